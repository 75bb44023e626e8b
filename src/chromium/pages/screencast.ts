import type { Log } from '../../lib/log.ts';
import type { WebSocketReceiver, WebSocketSink } from '../../lib/ws-sink.ts';
import type { Mux } from '../cdp/mux.ts';
import { isTargetGone } from '../cdp/shapes.ts';
import type { Casts } from './cast.ts';
import type { SessionFiles } from './viewer-files.ts';
import { viewerInput } from './viewer-input.ts';
import { addressOf, readViewerMessage, viewerBounds } from './viewer-messages.ts';
import { viewerPictures } from './viewer-pictures.ts';
import { viewerPopups } from './viewer-popups.ts';
import type { ViewerMessage } from './viewer-protocol.ts';
import { viewerSteering } from './viewer-commands.ts';
import { viewerTabs } from './viewer-tabs.ts';
import { viewerUploads } from './viewer-uploads.ts';
import { Viewer } from './viewer.ts';

/**
 * The live view of a headless session: one viewer, with a client of the multiplexer for its tabs and its input. Its pictures come from a
 * cast that it shares with other viewers (`casts`, cast.ts). The messages to the viewer and from it are in viewer-protocol.ts.
 */
export function attachScreencast(
  mux: Mux,
  sink: WebSocketSink,
  options: {
    readOnly: boolean;
    log: Log;
    files?: SessionFiles | undefined;
    casts: Pick<Casts, 'join'>;
    /** The search engine for words in the address bar; see `destinationOf`. */
    searchUrl?: string;
    /** Gives the session's viewport another size. */
    fit?: ((size: { width: number; height: number }) => void) | undefined;
  },
): WebSocketReceiver {
  const { readOnly, log } = options;
  const viewer = new Viewer(mux.attachLocal(), sink, options);
  const { client } = viewer;
  const steering = viewerSteering(viewer, mux, options.searchUrl);
  const pictures = viewerPictures(viewer, options.casts);
  const tabs = viewerTabs(viewer, mux, {
    left: pictures.stop,
    attached(tab) {
      popups.close();
      steering.start(tab);
      uploads?.start(tab);
      pictures.start(tab);
    },
  });
  const input = viewerInput(viewer, mux.hiddenWorld, (tab) => popups.look(tab));
  const popups = viewerPopups(viewer, mux.hiddenWorld, input.exclusive);
  const uploads = readOnly || !options.files ? undefined : viewerUploads(viewer, mux, options.files);
  const beyond = viewerBounds(readOnly);

  client.on('Target.targetCrashed', isTargetGone, ({ targetId }) => {
    if (targetId === viewer.shown?.id) viewer.tell({ type: 'crashed' });
  });
  void client.closed.then((reason) => viewer.end(client.closeCode ?? 1011, reason));

  viewer.tell({ type: 'hello', readOnly });
  void tabs.discover();

  return {
    flush() {},
    receive(data) {
      if (viewer.over) return;
      const fault = beyond(data);
      if (fault) return viewer.end(fault.code, fault.reason);
      const message = readViewerMessage(data, readOnly);
      if (!message) return log.debug({ bytes: data.length }, 'screencast.message_ignored');
      handle(message);
    },
    closed: () => viewer.left(),
  };

  function handle(message: ViewerMessage): void {
    const { shown } = viewer;
    switch (message.type) {
      case 'ack':
        return pictures.drawn();
      case 'size':
        return pictures.resize(message);
      case 'fit':
        return options.fit?.(message);
      case 'quality':
        return pictures.setQuality(message.level);
      case 'selectTab':
        return tabs.select(message.id);
      case 'follow':
        return tabs.follow(message.on);
      case 'newTab':
        return void tabs.open();
      case 'offerFiles':
      case 'fileBytes':
      case 'noFiles':
      case 'downloads':
      case 'save':
        return uploads?.take(message);
      case 'openTab':
        return void tabs.open(addressOf(message.address));
      case 'closeTab':
        return tabs.close(message.id);
      case 'navigate':
      case 'history':
      case 'answer':
        if (shown?.sessionId !== undefined) steering.steer(shown, message);
        return;
      case 'mouse':
      case 'wheel':
      case 'key':
      case 'text':
      case 'compose':
      case 'paste':
      case 'copy':
        if (shown?.sessionId !== undefined) input.take(shown, message);
        return;
      case 'choose':
      case 'setValue':
      case 'dismiss':
        if (shown) popups.take(shown, message);
    }
  }
}
