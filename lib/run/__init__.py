"""One run, on disk and over processes.

distributed      which part of a batch is this process's, and sums over all of them
pace             how long the rest of a run takes
machine          the commit, the versions and the computer that a run was made by
directory        the directory of a run: whether a run may start in it, and the names in it
runlog           its JSONL streams, which survive a kill
tracking         a dashboard beside the files of a run, on which nothing depends
adapter_files    trained weights in files: an adapter, or a whole model
model_card       what is told of trained weights, beside them
fingerprints     what a run is made of, beside its config, known again
manifest         folders whose every byte is known, and what a failed write means
checkpoint       everything a restart needs, saved atomically
hub              the Hugging Face Hub: whether it answers, asked in seconds; what goes there and comes from there
outbox           trained weights that wait in a run until the Hub has them
"""
