import type { PageUnderTest } from './live-view.ts';
import { GROUND, until, type View } from './live-view-page.ts';

/** Shows a picture of many colours on the ground of the page, as photographs have them. */
const NOISE = `{
  const canvas = Object.assign(document.createElement('canvas'), { width: 256, height: 256 });
  const context = canvas.getContext('2d');
  const image = context.createImageData(256, 256);
  image.data.set(image.data.map((_, i) => (i % 4 === 3 ? 255 : 60 + 100 * Math.random())));
  context.putImageData(image, 0, 0);
  const place = '${GROUND.x - 100}px ${GROUND.y - 100}px';
  document.body.style.background = '#fff url(' + canvas.toDataURL() + ') ' + place + ' no-repeat';
}`;
const WHITE = `document.body.style.background = '#fff'`;

/** The bytes that a viewer gets for a pixel when it has chosen this quality. The page shows the same each time. */
export async function bytesPerPixel(view: View, under: PageUnderTest, quality: string): Promise<number> {
  const { page, cdp } = view;
  await page.locator('#picture-quality').selectOption(quality);
  await under.evaluate(`field.value = ''; ${WHITE}`);
  await page.locator('#keyboard').focus();
  await page.keyboard.insertText(quality);
  await until(() => under.evaluate('field.value')).toBe(quality); // the choice was sent before it
  const isWhite = async () => (await view.colour(GROUND)).every((part) => part > 250);
  await until(isWhite).toBe(true); // pictures that were sent before the choice are drawn, too

  const received: Buffer[] = [];
  const take = ({ response: { opcode, payloadData } }: { response: { opcode: number; payloadData: string } }) => {
    if (opcode === 2) received.push(Buffer.from(payloadData, 'base64'));
  };
  cdp.on('Network.webSocketFrameReceived', take);
  await cdp.send('Network.enable');
  await under.evaluate(NOISE);
  await until(isWhite).toBe(false);
  await cdp.send('Network.disable');
  cdp.off('Network.webSocketFrameReceived', take);
  await under.evaluate(WHITE);
  const found = densities(Buffer.concat(received));
  // A picture of a tab may still be white. A display sends the part that has changed, and soon the same almost without loss.
  return (await page.locator('#screen').isVisible()) ? Math.max(...found) : Math.min(...found);
}

const JFIF = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
const END = Buffer.from([0xff, 0xd9]);
const SIZE = 0xc0;
const SCAN = 0xda;

/** A smaller one is mostly header. */
const LEAST_PIXELS = 10_000;

/** For each of the JPEGs in a stream, its bytes for a pixel. */
function densities(stream: Buffer): number[] {
  const found: number[] = [];
  for (let from = stream.indexOf(JFIF), to; from !== -1; from = stream.indexOf(JFIF, to)) {
    let [at, pixels] = [from + 2, 0];
    for (; stream[at + 1] !== SCAN; at += 2 + stream.readUInt16BE(at + 2))
      if (stream[at + 1] === SIZE) pixels = stream.readUInt16BE(at + 5) * stream.readUInt16BE(at + 7);
    to = stream.indexOf(END, at);
    if (to === -1) break; // it is still on its way
    if (pixels >= LEAST_PIXELS) found.push((to - from) / pixels);
  }
  return found;
}

/** The qualities that a viewer of a display asks it for from now on, from 0 to 9. */
export async function qualities({ cdp }: View): Promise<number[]> {
  const found: number[] = [];
  cdp.on('Network.webSocketFrameSent', ({ response: { opcode, payloadData } }) => {
    const sent = opcode === 2 ? Buffer.from(payloadData, 'base64') : Buffer.alloc(0);
    if (sent[0] !== 2) return; // SetEncodings
    for (let at = 4; at + 4 <= sent.length; at += 4) {
      const level = 32 + sent.readInt32BE(at);
      if (level >= 0 && level <= 9 && found.at(-1) !== level) found.push(level);
    }
  });
  await cdp.send('Network.enable');
  return found;
}
