"""What a program needs on a newer TensorFlow, and where.

Reading order: `findings` (what comes out), `guests` (hooks, callbacks and the places
that take them), `tpu_names` (TPUs without a name), `python2_uses`, `version_checks`,
`calls` (what is called in another way), `gpu_readers`, `earlier_releases` (what 1.15
refuses, too), `private_keras` (imports that stay), `scan` (all findings of a file),
`formats` (how the report is written), `child_programs`, `removed_modules`, `diagnosis`
(what is left to a person where `hookbridge run` runs the program) and `verdict` (how
that is written).
"""
