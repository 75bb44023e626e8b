import { LOWER } from './lowered.ts';
import { STAGE } from './mounts.ts';

/** The scripts that run before a session's command. */

/** The gateway's port inside the session's network namespace. Each session has its own namespace, so all can use the same port. */
export const GATEWAY_PORT = 3128;

/**
 * Runs as root of the new network namespace, before privileges are dropped. `$1` is the directory to mount at the stage, `$2` and `$3`
 * are optional ones to mount within it. `$4` lists listeners as `address,port`; an address that is not loopback is given to `lo`.
 *
 * The first `read` waits until the service has put this process in its cgroup, the second one for the display. Each exits
 * if the service has died.
 * A namespace with nothing but `lo` makes navigator.onLine false. Both ends of a veth pair inside, and a default route from
 * one end to the other, make it true and lead nowhere.
 *
 * The network is complete before Chromium looks at it, and does not change afterwards: an address that is added later, such as the
 * one IPv6 gives each link a second after it is up, makes Chromium drop every request in flight (ERR_NETWORK_CHANGED).
 */
export const SCRIPT = `
read -r go || exit 1
exec >&2
${LOWER}
mount --bind "$1" ${STAGE} || exit 1
[ -z "$2" ] || mount --bind "$2" ${STAGE}/tools || exit 1
[ -z "$3" ] || mount --bind "$3" ${STAGE}/app || exit 1
ip -force -batch - <<END
link set lo up
link add v0 type veth peer name v1
link set v0 addrgenmode none
link set v1 addrgenmode none
addr add 10.0.0.2/24 dev v0
link set v0 up
link set v1 up
route add default via 10.0.0.1
END
for listener in $4; do
  case $listener in
    127.*|::1,*) ;;
    *) ip addr add "\${listener%,*}" dev lo nodad 2>/dev/null || ip addr add "\${listener%,*}" dev lo || exit 1 ;;
  esac
done
"$5" -e "$6" "$4" </dev/null 3<&- 4>&- 6>&- 7<&- &
shift 6
read -r display || exit 1
exec "$@" </dev/null 5>&-
`;

export const UNSANDBOXED_SCRIPT = `
read -r go && read -r display || exit 1
[ -z "$display" ] || export DISPLAY="$display"
exec </dev/null >&2
${LOWER}
exec "$@"
`;

/**
 * Listens inside the namespace and sends the sockets to the service: the gateway's first, then those of the listeners, in order. Each is
 * sent as a bare handle, not as a server: the service then accepts nothing before it is ready, and connections wait in the kernel
 * instead of being lost.
 *
 * The gateway's listens on every address of the namespace's loopback, the only interface there: a browser's lanes have addresses of their
 * own (egress/lanes.ts). Namespaces with listeners have no browser, and their listeners may have the same port.
 *
 * It exits when the connection to the service closes. Node emits no `disconnect` while a handle is being sent, so `connected` is polled as well:
 * otherwise a service that is killed at that moment leaves this process behind.
 */
export const HELPER = `
process.on('disconnect', () => process.exit());
setInterval(() => process.connected || process.exit(), 100);
const listeners = (process.argv[1] || '').split(' ').filter(Boolean).map((listener) => listener.split(','));
const anywhere = listeners.length > 0 ? '127.0.0.1' : '0.0.0.0';
const places = [[anywhere, ${GATEWAY_PORT}], ...listeners].map(([host, port]) => ({ host, port: Number(port), backlog: 511 }));
const next = () => {
  const place = places.shift();
  if (!place) return;
  const server = require('node:net').createServer();
  server.listen(place, () => process.connected ? process.send('socket', server._handle, next) : process.exit());
};
next();
`;
