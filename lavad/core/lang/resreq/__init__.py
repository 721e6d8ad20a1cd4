"""LSF's resource requirements (``-R``, RES_REQ): parsed, joined, written back, and the select expression evaluated."""
