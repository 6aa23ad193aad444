"""The state of callbacks as files next to a checkpoint, for both loops.

Read `keeper` (what is written, and who writes last), `moments` (of which moment it is),
`write_order` (by whom, in which order), `loop_state` (where a run goes on),
`restart_line` (what the log says of it), `parts` (the callbacks, and their state now),
`restored_state` (what was found for them), `files`, `identity` and `matching` (whose
state it is), `attributes` (what is state), `document` (the form of the files), `codec`
and `storage`.
`rewriting` guards a checkpoint that is written again; `save_listeners` is for saves
that no saver of a graph makes; `backups` is for those of `BackupAndRestore`.
"""
