"""One stop for all processes of a job.

Reading order: `hook`, `member`, `board`, `watch`, `around_session`, `evaluator`.
"""
