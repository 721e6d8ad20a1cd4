"""LSF_LOG_MASK: how much the daemons write into their logs."""

LEVELS = {
    "LOG_EMERG": 50,
    "LOG_ALERT": 50,
    "LOG_CRIT": 50,
    "LOG_ERR": 40,
    "LOG_WARNING": 30,
    "LOG_NOTICE": 20,
    "LOG_INFO": 20,
}
DEFAULT = 20


def level_of(mask: str) -> int:
    """The level of Python's logging for a mask; "" and an unknown one are LOG_INFO, which says what becomes of each job."""
    mask = mask.upper()
    return 10 if mask.startswith("LOG_DEBUG") else LEVELS.get(mask, DEFAULT)
