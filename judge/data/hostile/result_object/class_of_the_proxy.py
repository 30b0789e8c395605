# expected: wrong load_error died
from multiprocessing import connection, managers, queues, sharedctypes

def passed(self, *_, **__):
    return "passed"

for proxy in (managers.BaseProxy, managers.ListProxy, managers.DictProxy, managers.ValueProxy):
    proxy._callmethod = proxy.append = proxy.__getitem__ = passed
queues.Queue.get = queues.SimpleQueue.get = connection.Connection.recv = passed

# include: none.py
