"""What each pend reason, end and refusal means, and what to do: one table, behind lava why, lava explain and docs/reasons.md.

``names`` tells of parameters and options, for lava explain alone. May import facts and below.
"""
