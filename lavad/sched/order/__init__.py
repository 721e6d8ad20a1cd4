"""Who is served before whom: fair share, dominant resources, a site's own policy. May import core."""
