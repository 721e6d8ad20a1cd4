"""What is true about the cluster and how it may change. Pure: no clock, file, socket, random number, log, wire or database.

Rooms from the bottom: lang, job, site, cluster, events, plan, rules, decide; each imports those below it only.
"""
