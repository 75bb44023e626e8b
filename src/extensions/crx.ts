import { urlOf } from '../lib/urls.ts';

/**
 * A CRX is a zip after a header: `Cr24`, the format's version, and the length of the signed part. Returns where the zip
 * begins, or undefined when this is not the beginning of a CRX. Sixteen bytes are enough.
 */
export function zipOffset(head: Buffer): number | undefined {
  if (head.length < 16 || head.toString('latin1', 0, 4) !== 'Cr24') return undefined;
  const version = head.readUInt32LE(4);
  if (version === 3) return 12 + head.readUInt32LE(8);
  if (version === 2) return 16 + head.readUInt32LE(8) + head.readUInt32LE(12);
  return undefined;
}

/** The id in the URL of an extension's page: `…/detail/<words>/<id>`. */
export function storeIdOf(url: string): string | undefined {
  const { hostname = '', pathname = '', protocol } = urlOf(url) ?? {};
  if (protocol !== 'https:' || !['chromewebstore.google.com', 'chrome.google.com'].includes(hostname)) return undefined;
  return /\/detail\/(?:[^/]+\/)?([a-p]{32})(?:\/|$)/.exec(pathname)?.[1];
}
