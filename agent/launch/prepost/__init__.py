"""Commands before and after a job: which there are, as whom they run, and how they run as another user than the job's."""
