"""One run, on disk and over processes.

distributed      this process's part of a batch, and sums over all processes
machine          the commit, package versions and computer of a run
directory        the directory of a run: whether a run may start in it, and the names in it
runlog           its JSONL streams, which survive a kill
tracking         an optional dashboard next to the files of a run
fingerprints     hashes of model and code, which a resume must find unchanged
manifest         checksums of a folder's files, and one error for a failed write
adapter_files    reading and writing trained weights: an adapter, or a whole model
model_card       the README.md next to trained weights
checkpoint       everything a restart needs, saved atomically
hub              the Hugging Face Hub: whether it can be reached, uploads and downloads
results          the trained weights that a command line names
outbox           trained weights that wait in a run directory until they are uploaded
"""
