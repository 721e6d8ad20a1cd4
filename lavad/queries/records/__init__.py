"""What programs read: the records of ``proto/records.py`` in JSON, for the page and REST. May import admin, jobs and facts."""
