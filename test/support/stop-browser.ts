/**
 * A script for `sh` inside a session that stops its browser: every process but process 1, the guest with its children, and this shell. The
 * guest runs on, so that the session can be asked for more.
 */
export const STOP_BROWSER = `
for at in /proc/[0-9]*; do
  pid=\${at#/proc/}
  tr '\\0' ' ' <"$at/cmdline" 2>/dev/null | grep -q -- '--remote-debugging-pipe' || continue
  [ "$pid" = 1 ] || [ "$pid" = $$ ] || kill -STOP "$pid"
done
until grep -qs '^State:.*stopped' /proc/[0-9]*/status; do sleep 0.1; done
echo stopped
`;
