"""What commands share that change jobs or the site: which jobs are meant, one ask, a line of answer for each job.

May import client.
"""
