#!/bin/bash
# Runs inside the root, with namespaces of its own: `prepare` writes settings and fills the databases once, `run` starts all on copies in memory.
# No network service runs: servers are made without a network, and what Nova asks of one is answered with empty lists.
set -euo pipefail
export LC_ALL=C.UTF-8 HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
address=127.0.77.1 state=/var/lib/stand password=stand-only-secret
db=mysql+pymysql://stand:stand@$address
mode=$1

begun=$(date +%s)
say() { echo "[$(($(date +%s) - begun)) s] $*" >>/run/log/stand; }
give_up() { echo "stand: $*" >&2; tail -n 5 /run/log/* >&2; exit 1; }

# Everything that is written is in memory.
for folder in /run /tmp /dev/shm /var/log /var/lib/mysql /var/lib/rabbitmq /var/lib/nova /var/lib/glance /var/lib/cinder; do
  mkdir -p $folder
  mount -t tmpfs -o mode=1777 none $folder
done
mkdir -p /run/mysqld /run/log /run/lock /var/lib/glance/images /var/lib/nova/{tmp,instances} /var/log/{rabbitmq,nova,keystone,glance,placement,cinder} $state
chmod 755 /root
export PYTHONDONTWRITEBYTECODE=1
chown mysql /run/mysqld /var/lib/mysql
chown rabbitmq /var/lib/rabbitmq /var/log/rabbitmq
chown -R nova /var/lib/nova /var/log/nova
chown -R cinder /var/lib/cinder /var/log/cinder
chown -R glance /var/lib/glance /var/log/glance
chown keystone /var/log/keystone
hostname stand
printf '127.0.0.1 localhost\n%s stand\n' $address >/etc/hosts

as() { local user=$1; shift; setpriv --reuid="$user" --regid="$user" --init-groups "$@"; }
# As this user, in the background, with a log of this name.
serve() { local user=$1 log=$2; shift 2; as "$user" "$@" >"/run/log/$log" 2>&1 </dev/null & }
# Until a command succeeds, for as many seconds.
within() { local seconds=$1; shift; for _ in $(seq $((seconds * 5))); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; return 1; }
listens() { (: <>"/dev/tcp/$address/$1"); }
set_() { local file=$1 section=$2; shift 2; for pair; do settings+="$file|$section|${pair%%=*}|${pair#*=}"$'\n'; done; }
# All settings at once.
write_settings() {
  python3 - <<END
import configparser
files = {}
for line in '''$settings'''.splitlines():
    name, section, key, value = line.split('|', 3)
    if name not in files:
        files[name] = configparser.RawConfigParser(strict=False, default_section='none')
        files[name].optionxform = str
    parser = files[name]
    if not parser.has_section(section):
        parser.add_section(section)
    parser.set(section, key, value)
for name, parser in files.items():
    with open(name, 'w') as file:
        parser.write(file)
END
}

start_database() {
  serve mysql mysql mysqld --no-defaults --datadir=/var/lib/mysql --bind-address=$address --port=3306 --socket=/run/mysqld/mysqld.sock \
    --pid-file=/run/mysqld/pid --skip-name-resolve --innodb-flush-log-at-trx-commit=0 --innodb-flush-method=fsync --performance-schema=OFF \
    --max-connections=500 --innodb-log-file-size=48M --innodb-buffer-pool-size=256M
  within 90 mysqladmin --socket=/run/mysqld/mysqld.sock ping || give_up "MariaDB does not start"
  say "MariaDB answers"
}

start_queue() {
  export RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_NODE_IP_ADDRESS=$address RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}' \
    ERL_EPMD_PORT=43690 ERL_EPMD_ADDRESS=127.0.0.1 RABBITMQ_DIST_PORT=45672
  printf 'default_user = stand\ndefault_pass = stand\nloopback_users = none\n' >/etc/rabbitmq/rabbitmq.conf
  serve rabbitmq rabbitmq env HOME=/var/lib/rabbitmq /usr/lib/rabbitmq/bin/rabbitmq-server
}

configure() {
  settings=
  local keystone=/etc/keystone/keystone.conf placement=/etc/placement/placement.conf glance=/etc/glance/glance-api.conf nova=/etc/nova/nova.conf cinder=/etc/cinder/cinder.conf
  local login=("auth_url=http://$address:5000" auth_type=password project_domain_name=Default user_domain_name=Default
    project_name=service "password=$password" region_name=RegionOne)
  set_ $keystone DEFAULT log_dir=
  set_ $keystone database connection=$db/keystone
  set_ $keystone token provider=fernet
  set_ $keystone cache enabled=true backend=dogpile.cache.memcached memcache_servers=$address:11211
  set_ $placement placement_database connection=$db/placement
  set_ $placement api auth_strategy=keystone
  set_ $glance DEFAULT bind_host=$address workers=0 log_file= enforce_secure_rbac=true
  set_ $glance database connection=$db/glance
  set_ $glance paste_deploy flavor=keystone
  set_ $glance glance_store stores=file default_store=file filesystem_store_datadir=/var/lib/glance/images/
  set_ $nova DEFAULT transport_url=rabbit://stand:stand@$address:5672/ my_ip=$address osapi_compute_workers=1 osapi_compute_listen=$address \
    enabled_apis=osapi_compute compute_driver=stand_driver.Driver vif_plugging_is_fatal=false vif_plugging_timeout=0 state_path=/var/lib/nova log_file= \
    lock_path=/var/lib/nova/tmp sync_power_state_interval=-1 bandwidth_poll_usage=false
  set_ $nova api_database connection=$db/nova_api
  set_ $nova database connection=$db/nova
  set_ $nova api auth_strategy=keystone local_metadata_per_cell=false
  set_ $nova conductor workers=1
  set_ $nova scheduler workers=1
  set_ $nova glance api_servers=http://$address:9292
  set_ $nova oslo_concurrency lock_path=/var/lib/nova/tmp
  set_ $nova filter_scheduler track_instance_changes=false
  # A reader may change nothing, as in clouds of today.
  set_ $nova oslo_policy enforce_new_defaults=true
  set_ $glance oslo_policy enforce_new_defaults=true
  set_ $nova vnc enabled=true novncproxy_base_url=http://$address:6080/vnc.html
  set_ $nova quota instances=-1 cores=-1 ram=-1 metadata_items=128
  set_ $nova placement "${login[@]}" username=placement
  # Cinder detaches volumes for Nova's own user alone.
  set_ $nova service_user "${login[@]}" username=nova send_service_user_token=true
  set_ $nova neutron "${login[@]}" username=nova endpoint_override=http://$address:9696
  set_ $cinder DEFAULT transport_url=rabbit://stand:stand@$address:5672/ my_ip=$address osapi_volume_listen=$address osapi_volume_workers=1 \
    auth_strategy=keystone enabled_backends=stand glance_api_servers=http://$address:9292 state_path=/var/lib/cinder log_file= log_dir=
  set_ $cinder stand volume_driver=cinder.volume.drivers.stand_volumes.Driver volume_backend_name=stand
  set_ $cinder database connection=$db/cinder
  set_ $cinder oslo_concurrency lock_path=/var/lib/cinder/tmp
  set_ $cinder keystone_authtoken service_token_roles=service service_token_roles_required=true
  local file
  for file in $placement $glance $nova $cinder; do
    set_ $file keystone_authtoken "${login[@]}" "username=$(basename ${file%-api.conf} .conf)" "www_authenticate_uri=http://$address:5000" \
      memcached_servers=$address:11211
  done
  write_settings
  # The package's file would set another driver.
  : >/etc/nova/nova-compute.conf
  for host in one two; do printf '[DEFAULT]\nhost = %s\n' $host >/etc/nova/host-$host.conf; done
}

prepare() {
  as mysql mysql_install_db --no-defaults --datadir=/var/lib/mysql --auth-root-authentication-method=normal >/run/log/install 2>&1 ||
    give_up "MariaDB cannot be set up"
  start_database
  local name
  for name in keystone placement glance cinder nova nova_api nova_cell0; do
    mysql --socket=/run/mysqld/mysqld.sock -e "CREATE DATABASE $name; GRANT ALL ON $name.* TO 'stand'@'%' IDENTIFIED BY 'stand'"
  done
  configure
  as keystone keystone-manage db_sync >/run/log/keystone-db 2>&1 || give_up "keystone-manage db_sync"
  keystone-manage fernet_setup --keystone-user keystone --keystone-group keystone
  keystone-manage credential_setup --keystone-user keystone --keystone-group keystone
  as keystone keystone-manage bootstrap --bootstrap-password $password --bootstrap-region-id RegionOne \
    --bootstrap-{admin,internal,public}-url=http://$address:5000/v3/ >/run/log/bootstrap 2>&1 || give_up "keystone-manage bootstrap"
  as placement placement-manage db sync >/run/log/placement-db 2>&1 || give_up "placement-manage db sync"
  as glance glance-manage db_sync >/run/log/glance-db 2>&1 || give_up "glance-manage db_sync"
  as cinder cinder-manage db sync >/run/log/cinder-db 2>&1 || give_up "cinder-manage db sync"
  local step
  for step in "api_db sync" "cell_v2 map_cell0 --database_connection $db/nova_cell0" "cell_v2 create_cell --name=one" "db sync"; do
    # shellcheck disable=SC2086 # words
    as nova nova-manage $step >>/run/log/nova-db 2>&1 || give_up "nova-manage $step"
  done
  # MySQL would cut the seconds of Nova's record of actions, by which clients are checked; PostgreSQL keeps their parts.
  mysql --socket=/run/mysqld/mysqld.sock nova -e "ALTER TABLE instance_actions MODIFY start_time DATETIME(6), MODIFY updated_at DATETIME(6);
    ALTER TABLE instance_actions_events MODIFY start_time DATETIME(6), MODIFY finish_time DATETIME(6)"
  say "databases are filled"
  start_services
  # Nova's services give up for long where Keystone does not know them yet.
  catalogue
  start_nova
  what_servers_are_made_of
  within 180 has_computes || give_up "nova-compute does not start"
  as nova nova-manage cell_v2 discover_hosts --verbose >/run/log/discover 2>&1 || give_up "nova-manage discover_hosts"
  mysqladmin --socket=/run/mysqld/mysqld.sock shutdown
  within 60 test ! -e /run/mysqld/pid
  rm -rf $state
  mkdir -p $state
  tar -C /var/lib/mysql -cf $state/mysql.tar .
  tar -C /var/lib/glance -cf $state/glance.tar .
  say prepared
}

start_services() {
  serve memcache memcached memcached -l $address -m 64
  start_queue
  serve keystone keystone python3 /root/serve-wsgi.py /usr/bin/keystone-wsgi-public $address 5000
  serve placement placement python3 /root/serve-wsgi.py /usr/bin/placement-api $address 8778
  serve memcache network python3 /root/serve-wsgi.py nothing $address 9696
  serve glance glance glance-api --config-file /etc/glance/glance-api.conf
  within 120 listens 5672 || give_up "RabbitMQ does not start"
  say "RabbitMQ answers"
  local port
  for port in 5000 8778 9292; do within 180 listens $port || give_up "nobody listens on port $port"; done
}

start_nova() {
  serve nova nova-api nova-api
  serve cinder cinder-api cinder-api
  serve cinder cinder-scheduler cinder-scheduler
  serve cinder cinder-volume cinder-volume
  serve nova nova-conductor nova-conductor
  serve nova nova-scheduler nova-scheduler
  for host in one two; do serve nova nova-compute-$host nova-compute --config-file /etc/nova/nova.conf --config-file /etc/nova/host-$host.conf; done
  within 180 listens 8774 || give_up "nova-api does not start"
  within 180 listens 8776 || give_up "cinder-api does not start"
  say "services listen"
}

# Both have told that they are there, since the services started.
has_computes() {
  local found
  found=$(mysql --socket=/run/mysqld/mysqld.sock -N -e "SELECT COUNT(*) FROM nova.services JOIN nova.compute_nodes USING (host)
    WHERE topic = 'compute' AND last_seen_up > FROM_UNIXTIME($begun)")
  [[ $found = 2 ]]
}

# Projects, users and endpoints, and what servers are made of.
catalogue() {
  python3 - <<END || give_up "the catalogue cannot be filled"
import openstack
cloud = openstack.connect(auth_url='http://$address:5000/v3', username='admin', password='$password', project_name='admin',
                          user_domain_id='default', project_domain_id='default', region_name='RegionOne')
identity = cloud.identity
service = identity.create_project(name='service', domain_id='default')
roles = {role.name: role for role in identity.roles()}
roles.setdefault('service', None)
roles['service'] = roles['service'] or identity.create_role(name='service')
for name in ('placement', 'glance', 'nova', 'cinder'):
    user = identity.create_user(name=name, password='$password', domain_id='default', default_project_id=service.id)
    identity.assign_project_role_to_user(service, user, roles['admin'])
    identity.assign_project_role_to_user(service, user, roles['service'])
for name, kind, url in (('placement', 'placement', ':8778'), ('nova', 'compute', ':8774/v2.1'), ('glance', 'image', ':9292'),
                        ('cinder', 'volumev3', ':8776/v3/%(project_id)s'), ('neutron', 'network', ':9696')):
    made = identity.create_service(name=name, type=kind)
    for interface in ('public', 'internal', 'admin'):
        identity.create_endpoint(service_id=made.id, interface=interface, region_id='RegionOne', url='http://$address' + url)
project = identity.create_project(name='bench', domain_id='default')
for name, role in (('member', 'member'), ('reader', 'reader')):
    user = identity.create_user(name=name, password='$password', domain_id='default', default_project_id=project.id)
    identity.assign_project_role_to_user(project, user, roles[role])
admin = identity.find_user('admin')
identity.assign_project_role_to_user(project, admin, roles['admin'])
END
}

what_servers_are_made_of() {
  python3 - <<END || give_up "flavors and an image cannot be made"
import openstack
cloud = openstack.connect(auth_url='http://$address:5000/v3', username='admin', password='$password', project_name='admin',
                          user_domain_id='default', project_domain_id='default', region_name='RegionOne')
for name, ram in (('tiny', 64), ('small', 128)):
    # Flavors without a disk are administrators'.
    cloud.compute.create_flavor(name=name, ram=ram, vcpus=1, disk=1)
# Its hosts take five seconds for what takes the others none: see stand_driver.py.
slow = cloud.compute.create_flavor(name='slow', ram=64, vcpus=1, disk=1)
cloud.compute.create_flavor_extra_specs(slow, {'stand:seconds': '5'})
cloud.image.create_image('cirros', disk_format='raw', container_format='bare', visibility='public', data=b'no system' * 1000,
                         allow_duplicates=True)
END
}

case $mode in
  prepare) prepare ;;
  run)
    tar -C /var/lib/mysql -xf $state/mysql.tar
    tar -C /var/lib/glance -xf $state/glance.tar
    start_database
    start_services
    start_nova
    within 180 has_computes || give_up "nova-compute does not start"
    say up
    cat /run/log/stand >&2
    echo up
    cat >/dev/null
    ;;
esac
