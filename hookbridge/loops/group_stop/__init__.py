"""One stop for all processes of a job."""
