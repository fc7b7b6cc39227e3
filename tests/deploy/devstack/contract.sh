# shellcheck shell=bash
# What the plugin may rely on: devstack's functions with the least and most arguments that each takes, recorded from
# its functions-common, functions, inc/ and lib/ (July 2026).  Each call is written down; those with a result give one.

calls() {
    local name=$1 least=$2 most=$3
    shift 3
    if (($# < least || $# > most)); then
        echo "$name takes $least to $most arguments, not $#: $*" >&2
        exit 64
    fi
    record "$name" "$@"
}

while read -r name least most; do
    eval "function $name { calls $name $least $most \"\$@\"; }"
done <<'TABLE'
configure_keystone_authtoken_middleware 2 4
create_service_user 1 2
define_plugin 1 1
echo_summary 1 99
get_or_create_endpoint 3 5
get_or_create_service 3 3
iniset_rpc_backend 2 4
recreate_database 1 1
remove_uwsgi_config 2 2
run_process 2 5
setup_develop 1 3
setup_logging 1 1
stop_process 1 1
write_uwsgi_config 3 5
TABLE

function iniset {
    calls iniset 4 5 "$@"
    "$PYTHON" -c '
import configparser, sys
path, section, name, value = sys.argv[1:]
parser = configparser.RawConfigParser(default_section="none")
parser.read(path)
if not parser.has_section(section):
    parser.add_section(section)
parser.set(section, name, value)
with open(path, "w") as file:
    parser.write(file)
' "$@"
}

function die { echo "$2" >&2; exit 1; }
function enable_service { local IFS=,; ENABLED_SERVICES+=",$*"; }
function is_service_enabled {
    local service
    # shellcheck disable=SC2048
    for service in $*; do
        [[ ,$ENABLED_SERVICES, =~ ,$service, ]] && return 0
        if type "is_${service}_enabled" > /dev/null 2>&1 && "is_${service}_enabled"; then return 0; fi
    done
    return 1
}
function get_python_exec_prefix { echo "$BIN"; }
function database_connection_url { echo "$DATABASE_URL"; }
