"""Strings in, strings out: reading answers from texts, and loading texts.

calls         tool calls and other JSON, broken or not
formats       the declared format of a text, and the one place in it where its answer may stand
rush_hour     boards and moves of the puzzle, read and replayed
templates     chats as a model reads them, and no control token in text from outside
chats         rows as chats of one form
labels        the trained tokens of a chat: the assistant's turns and their end token, for any template
tables        the splits of a data set, from wherever they lie
data          rows to train on and rows held out, which share none
chat_data     the same as chats: which rollouts are chosen, and what is left out
"""
