import { isScreencastFrame } from '../cdp/shapes.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import type { Mux } from '../cdp/mux.ts';
import { activePage } from './active-page.ts';

interface PictureForm {
  format: 'png' | 'jpeg';
  quality?: number;
  maxWidth: number;
  maxHeight: number;
}

/**
 * One picture of a screencast, in base64: Chromium scales it without the page noticing. A screenshot with a scale would change the page's
 * `devicePixelRatio` for a moment. Undefined: the page shows none in time.
 */
export async function smallPicture(
  client: LocalClient,
  sessionId: string,
  form: PictureForm,
  ms: number,
): Promise<string | undefined> {
  let stop = () => {};
  let late: NodeJS.Timeout | undefined;
  const shown = new Promise<string | undefined>((resolve) => {
    stop = client.on('Page.screencastFrame', isScreencastFrame, ({ data }, from) => {
      if (from === sessionId) resolve(data);
    });
    late = setTimeout(resolve, ms, undefined);
  });
  try {
    await client.send('Page.startScreencast', { ...form }, sessionId);
    return await shown;
  } finally {
    clearTimeout(late);
    stop();
    client.send('Page.stopScreencast', {}, sessionId).catch(() => {});
  }
}

const thumbnail: PictureForm = { format: 'jpeg', quality: 60, maxWidth: 320, maxHeight: 240 };

/** A small JPEG of the active page; undefined when there is none. */
export async function thumbnailOf(mux: Mux, ms: number): Promise<Buffer | undefined> {
  const active = activePage(mux);
  try {
    const page = await active.find();
    const picture = page && (await smallPicture(active.client, page.sessionId, thumbnail, ms));
    return picture === undefined ? undefined : Buffer.from(picture, 'base64');
  } finally {
    active.close();
  }
}
