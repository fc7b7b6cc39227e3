# shellcheck shell=bash
# The devstack plugin: `enable_plugin stoker URL` in local.conf.  devstack sources this file with a mode and a phase.

_XTRACE_STOKER=$(set +o | grep xtrace)
set +o xtrace

# is_stoker_enabled - also for `is_service_enabled stoker`
function is_stoker_enabled {
    [[ ,${ENABLED_SERVICES} =~ ,"stoker-" ]]
}

# stoker_conductors - print the names of the conductors' services
function stoker_conductors {
    local number
    for ((number = 1; number <= STOKER_CONDUCTORS; number++)); do
        echo "stoker-conductor-$number"
    done
}

# check_stoker_settings - reject settings that cannot work, before anything is installed
function check_stoker_settings {
    if is_service_enabled h-api; then
        die $LINENO "Stoker and Heat both are the cloud's orchestration service: disable one of them"
    fi
    if [[ ! $STOKER_CONDUCTORS =~ ^[1-9][0-9]*$ ]]; then
        die $LINENO "STOKER_CONDUCTORS must be a whole number of 1 or more, not '$STOKER_CONDUCTORS'"
    fi
}

# install_stoker - install the programs with the drivers that this devstack needs
function install_stoker {
    local driver=mysql
    if is_service_enabled postgresql; then
        driver=postgresql
    fi
    setup_develop "$STOKER_DIR" "$driver,etcd,client"
}

# stoker_database_url - print devstack's URL, changed to Stoker's drivers and full Unicode
function stoker_database_url {
    local url
    url=$(database_connection_url stoker)
    url=${url/#postgresql:/postgresql+psycopg:}
    # MySQL's utf8 keeps at most three bytes of a character.
    if [[ $url =~ charset=utf8($|&) ]]; then
        url=${url/charset=utf8/charset=utf8mb4}
    fi
    echo "$url"
}

# stoker_coordination_url - print the tooz URL of the conductors' group
function stoker_coordination_url {
    if [[ -n "$STOKER_COORDINATION_URL" ]]; then
        echo "$STOKER_COORDINATION_URL"
    elif is_service_enabled etcd3; then
        echo "etcd3+http://$SERVICE_HOST:$ETCD_PORT"
    else
        echo "file://$STOKER_DATA_DIR/coordination"
    fi
}

# stoker_secret_key - print the key that is set, or generate one that survives a restack
function stoker_secret_key {
    local kept=$STOKER_DATA_DIR/secret-key
    if [[ -n "$STOKER_SECRET_KEY" ]]; then
        echo "$STOKER_SECRET_KEY"
        return
    fi
    if [[ ! -s $kept ]]; then
        (umask 077 && "$(get_python_exec_prefix)/stoker-manage" key generate > "$kept")
    fi
    cat "$kept"
}

# configure_stoker - write the configuration files of Stoker and of uWSGI
function configure_stoker {
    sudo install -d -o "$STACK_USER" "$STOKER_CONF_DIR" "$STOKER_DATA_DIR"
    rm -f "$STOKER_CONF"
    (umask 077 && touch "$STOKER_CONF")

    iniset_rpc_backend stoker "$STOKER_CONF"
    iniset "$STOKER_CONF" DEFAULT debug "$ENABLE_DEBUG_LOG_LEVEL"
    setup_logging "$STOKER_CONF"
    iniset "$STOKER_CONF" database connection "$(stoker_database_url)"
    iniset "$STOKER_CONF" coordination backend_url "$(stoker_coordination_url)"
    iniset "$STOKER_CONF" secrets key "$(stoker_secret_key)"
    iniset "$STOKER_CONF" api public_url "$(stoker_api_url)"
    iniset "$STOKER_CONF" api auth_strategy keystone
    configure_keystone_authtoken_middleware "$STOKER_CONF" "$STOKER_SERVICE_USER"

    write_uwsgi_config "$STOKER_API_UWSGI_CONF" "$STOKER_API_UWSGI" "/orchestration" "" "stoker-api"
    iniset "$STOKER_API_UWSGI_CONF" uwsgi threads 8
    # uWSGI has its own command line, so an environment variable names the file.
    iniset "$STOKER_API_UWSGI_CONF" uwsgi env "STOKER_CONFIG_FILE=$STOKER_CONF"
    # Log no query string: it may contain the signature of a signal's URL.
    iniset "$STOKER_API_UWSGI_CONF" uwsgi log-format \
        '%(addr) - [%(ctime)] %(method) %(var.PATH_INFO) %(proto) %(status) %(size) %(msecs)ms'
}

# stoker_api_url - print the API's root URL
function stoker_api_url {
    echo "$SERVICE_PROTOCOL://$STOKER_API_HOST/orchestration"
}

# create_stoker_accounts - create the service user and the entry in the service catalog
function create_stoker_accounts {
    create_service_user "$STOKER_SERVICE_USER" admin
    get_or_create_service stoker orchestration "Stoker Orchestration Service"
    get_or_create_endpoint orchestration "$REGION_NAME" "$(stoker_api_url)/v1/\$(project_id)s"
}

# init_stoker - create the database, if this host has it
function init_stoker {
    if is_service_enabled "$DATABASE_BACKENDS"; then
        recreate_database stoker
    fi
    "$(get_python_exec_prefix)/stoker-manage" --config-file "$STOKER_CONF" db sync
}

# start_stoker - start the conductors first: without them requests are accepted, but wait
function start_stoker {
    local service bin
    bin=$(get_python_exec_prefix)
    if is_service_enabled stoker-conductor; then
        for service in $(stoker_conductors); do
            enable_service "$service"
            run_process "$service" \
                "$bin/stoker-conductor --config-file $STOKER_CONF --host $(hostname -s)-${service##*-}"
        done
    fi
    run_process stoker-api "$(which uwsgi) --procname-prefix stoker-api --ini $STOKER_API_UWSGI_CONF"
}

# stop_stoker - stop the API first, so that no new request arrives
function stop_stoker {
    local service
    stop_process stoker-api
    for service in $(stoker_conductors); do
        enable_service "$service"
        stop_process "$service"
    done
}

# cleanup_stoker - remove everything that the plugin has made
function cleanup_stoker {
    remove_uwsgi_config "$STOKER_API_UWSGI_CONF" stoker-api
    sudo rm -rf "$STOKER_CONF_DIR" "$STOKER_DATA_DIR"
}

if is_service_enabled stoker; then
    case "$1 ${2:-}" in
        "stack pre-install")
            check_stoker_settings
            ;;
        "stack install")
            echo_summary "Installing Stoker"
            install_stoker
            ;;
        "stack post-config")
            echo_summary "Configuring Stoker"
            configure_stoker
            create_stoker_accounts
            init_stoker
            ;;
        "stack extra")
            echo_summary "Starting Stoker"
            start_stoker
            ;;
        "unstack ")
            stop_stoker
            ;;
        "clean ")
            cleanup_stoker
            ;;
    esac
fi

$_XTRACE_STOKER
