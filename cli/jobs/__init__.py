"""Job files of ``lava run``: lava's own layout and Kubernetes' manifests, read into what bsub would be told.

May import submit and below.
"""
