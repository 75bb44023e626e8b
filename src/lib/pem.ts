import { X509Certificate } from 'node:crypto';

const begin = '-----BEGIN CERTIFICATE-----';
const end = '-----END CERTIFICATE-----';

/** Whether a text has PEM certificates, and each of them can be read. */
export function hasCertificates(text: string): boolean {
  const blocks = [...certificateBlocks(text)];
  try {
    return blocks.length > 0 && blocks.every((block) => new X509Certificate(block).fingerprint256 !== '');
  } catch {
    return false;
  }
}

/** A block that begins and never ends is the last one looked at: the text is read once. */
function* certificateBlocks(text: string): Generator<string> {
  for (let from = text.indexOf(begin); from !== -1; from = text.indexOf(begin, from)) {
    const to = text.indexOf(end, from + begin.length);
    if (to === -1) return;
    yield text.slice(from, (from = to + end.length));
  }
}
