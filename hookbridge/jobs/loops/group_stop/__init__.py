"""One stop for all processes of a job.

Reading order: `hook`, `stopper`, `member`, `board`, `watch`, `around_session`,
`evaluator`.
"""
