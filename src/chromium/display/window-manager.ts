/**
 * The window manager of a display, where there is one: openbox. With it, popups keep the size that the page gave them and have a title
 * bar to move and close them by, and a page in full screen fills the screen. Without it Chromium's windows are drawn where they ask to
 * be, over each other.
 *
 * The browser's own windows have no frame and stay below popups: their size and place are those of a display without a window manager.
 * No key is bound: all keys are for pages. No click into a window is bound either, and the window under the mouse has the keyboard: a click
 * that is bound waits until openbox has seen it, and keys that are typed after it would reach the page before it.
 */

/** The roles that Chromium gives its windows: `browser` for those with tabs, `pop-up` for those that pages open. */
export const windowManagerConfig = ({
  width,
  height,
}: {
  width: number;
  height: number;
}) => `<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew><followMouse>yes</followMouse><focusLast>yes</focusLast><raiseOnFocus>no</raiseOnFocus></focus>
  <placement><policy>Smart</policy><center>yes</center></placement>
  <theme><name>Clearlooks</name><titleLayout>LC</titleLayout><keepBorder>no</keepBorder><animateIconify>no</animateIconify></theme>
  <desktops><number>1</number><popupTime>0</popupTime></desktops>
  <resize><drawContents>yes</drawContents><popupShow>Never</popupShow></resize>
  <keyboard/>
  <mouse>
    <context name="Titlebar">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
    </context>
    ${['Top', 'Bottom', 'Left', 'Right', 'TLCorner', 'TRCorner', 'BLCorner', 'BRCorner']
      .map(
        (edge) =>
          `<context name="${edge}"><mousebind button="Left" action="Drag"><action name="Resize"/></mousebind></context>`,
      )
      .join('\n    ')}
    <context name="Close">
      <mousebind button="Left" action="Click"><action name="Close"/></mousebind>
    </context>
  </mouse>
  <applications>
    <application role="browser">
      <decor>no</decor><layer>below</layer>
      <position force="yes"><x>0</x><y>0</y></position>
      <size><width>${width}</width><height>${height}</height></size>
    </application>
  </applications>
</openbox_config>`;

/**
 * Parts of the display's script, for when the display is up as `$number`, with the pid `$xvnc`. The first one starts the window manager
 * with the configuration `$4`, unless that is empty.
 * Chromium asks at its start which one there is, so the second one waits for it, or for its failure: `$manager` is then `up` or not.
 * A running window manager is restarted when it ends. Until then the display works without one.
 */
export const MANAGE_WINDOWS = `
managed="$(mktemp -u)"
if [ -n "$4" ] && mkfifo -m 600 "$managed"; then
  printf '%s' "$4" >"$managed.xml"
  (
    export DISPLAY=":$number" HOME=/tmp LANG=C.UTF-8
    while kill -0 "$xvnc" 2>/dev/null; do
      openbox --sm-disable --config-file "$managed.xml" --startup "sh -c '[ ! -p $managed ] || echo up >$managed'" </dev/null
      if [ -p "$managed" ]; then echo failed >"$managed"; break; fi
      sleep 1
    done
  ) 3>&- &
fi
`;

export const WINDOWS_MANAGED = `
manager=none
if [ -p "$managed" ]; then
  read -r manager <"$managed"
  rm "$managed"
  [ "$manager" = up ] || echo 'the window manager did not start; popups have no frames'
fi
`;
