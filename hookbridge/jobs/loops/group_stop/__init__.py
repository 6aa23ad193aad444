"""One stop for all processes of a job.

Reading order: `hook`, `stop_requests`, `member`, `board`, `step_watch`,
`around_session`, `evaluator`.
"""
