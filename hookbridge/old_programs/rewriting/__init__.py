"""Changes the code of programs.

Reading order: the rooms `engine` and `rules`, then `registry` (all rules), `text` (the
text of one file) and `file_rewrites` (all files of a call, planned and written).
"""
