"""Options of the database: where it is, and how long each wait for it may take."""

from oslo_config import cfg

from ...db.connections import DatabaseLimits

_LIMITS = DatabaseLimits()

DATABASE = [
    cfg.StrOpt(
        "connection",
        secret=True,
        default="sqlite:////var/lib/stoker/stoker.sqlite",
        help="SQLAlchemy URL: postgresql+psycopg://, mysql+pymysql:// or, on a single host, sqlite://.",
    ),
    cfg.IntOpt(
        "pool_size",
        default=10,
        min=1,
        help="Connections kept open by each process; twice as many may be open. A conductor needs one for "
        "the work pipeline, three for its duties, up to four for their long work, and one for each step that "
        "reads; the API one for each request at a time.",
    ),
    cfg.FloatOpt(
        "pool_timeout",
        default=_LIMITS.pool,
        min=0.1,
        help="Seconds to wait for a connection while all are in use; then a request is answered 503.",
    ),
    cfg.FloatOpt(
        "connect_timeout",
        default=_LIMITS.connect,
        min=0,
        help="Seconds in which the server has to answer to a new connection; 0: no limit. A server that is "
        "gone is noticed on an open connection some seconds later.",
    ),
    cfg.FloatOpt(
        "lock_timeout",
        default=_LIMITS.lock,
        min=0,
        help="Seconds that a statement waits for a row which another transaction holds; 0: no limit. MariaDB "
        "counts whole seconds. Shorter answers sooner, longer gives way to more contention. Duties wait a "
        "fraction of a second, and come back to the row later.",
    ),
    cfg.FloatOpt(
        "statement_timeout",
        default=_LIMITS.statement,
        min=0,
        help="Seconds that one statement may take, its waits for locks included; 0: no limit. It does not "
        "count for `stoker-manage db sync`, `db purge` and `secrets rotate`.",
    ),
    cfg.FloatOpt(
        "idle_transaction_timeout",
        default=_LIMITS.idle,
        min=0,
        help="Seconds between two statements of a transaction after which the server ends it, and frees what "
        "it has locked: so long does what a host held stay locked that has lost power. 0: until the server's "
        "keepalive notices that, which is hours by default.",
    ),
    cfg.FloatOpt(
        "retry_time",
        default=_LIMITS.retry,
        min=0,
        help="Seconds after the first try of a transaction until which it is tried again: after a deadlock, "
        "a lost connection, or a lock_timeout. With lock_timeout it bounds how long a request may take whose "
        "stack is locked.",
    ),
    cfg.FloatOpt(
        "busy_timeout",
        default=_LIMITS.busy,
        min=0.1,
        help="Seconds that a transaction waits for its turn to write to SQLite, which has one writer.",
    ),
    cfg.FloatOpt(
        "clock_tolerance",
        default=1.0,
        min=0.05,
        help="Seconds that this host's clock may differ from the database's before a warning is logged, and "
        "that the database's time may jump before timeouts pause until the jump is confirmed. Deadlines "
        "follow the database's time, whatever this host's clock says.",
    ),
]
