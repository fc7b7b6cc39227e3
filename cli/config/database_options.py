"""Options of the database: its URL, and the limit of each wait for it."""

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
        default=20,
        min=1,
        help="Maximum number of connections of each process, which keeps them open. A conductor needs one "
        "for the work loop, three for its duties, up to four for their long work, and one for each step "
        "that reads; the API needs one for each concurrent request.",
    ),
    cfg.FloatOpt(
        "pool_timeout",
        default=_LIMITS.pool,
        min=0.1,
        help="Seconds to wait for a connection while all are in use; then a request is refused with 503.",
    ),
    cfg.FloatOpt(
        "connect_timeout",
        default=_LIMITS.connect,
        min=0,
        help="Seconds in which the server must answer a new connection; 0: no limit. An open "
        "connection notices some seconds later that the server is gone.",
    ),
    cfg.FloatOpt(
        "lock_timeout",
        default=_LIMITS.lock,
        min=0,
        help="Seconds that a statement waits for a row that another transaction has locked; 0: no "
        "limit. MariaDB counts whole seconds. Shorter fails sooner, longer tolerates more "
        "contention. Duties wait for a fraction of a second, and return to the row later.",
    ),
    cfg.FloatOpt(
        "statement_timeout",
        default=_LIMITS.statement,
        min=0,
        help="Seconds that one statement may take, including its waits for locks; 0: no limit. It does "
        "not apply to `stoker-manage db sync`, `db purge`, `db recount` and `secrets rotate`.",
    ),
    cfg.FloatOpt(
        "idle_transaction_timeout",
        default=_LIMITS.idle,
        min=0,
        help="Seconds between two statements of a transaction after which the server ends it and "
        "releases its locks. The locks of a host that lost power are kept for this long. 0: until "
        "the server's keepalive notices, hours by default.",
    ),
    cfg.FloatOpt(
        "retry_time",
        default=_LIMITS.retry,
        min=0,
        help="Seconds for which a transaction is retried after a deadlock, a lost connection or a "
        "lock_timeout. Together with lock_timeout it bounds the time of a request whose stack is "
        "locked.",
    ),
    cfg.FloatOpt(
        "busy_timeout",
        default=_LIMITS.busy,
        min=0.1,
        help="Seconds that a transaction waits to write to SQLite, which allows one writer at a time.",
    ),
    cfg.FloatOpt(
        "clock_tolerance",
        default=1.0,
        min=0.05,
        help="Seconds that this host's clock may differ from the database's before a warning is "
        "logged, and that the database's time may jump before timeouts pause until the jump is "
        "confirmed. Deadlines follow the database's clock, whatever this host's says.",
    ),
]
