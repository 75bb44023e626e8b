import { open } from 'node:fs/promises';
import { errors } from '../errors.ts';
import { zipOffset } from './crx.ts';
import { mostZipBytes, type Upload } from '../uploads/uploads.ts';

/** The Chrome Web Store needs a browser version to choose a release; any current version works. */
const storeBrowser = '150.0.0.0';

/** Downloads an extension from the store: a CRX, which contains a zip. */
export async function* fetchCrx(storeUrl: string, id: string, os: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  const address = new URL(storeUrl);
  const asked = { response: 'redirect', os, arch: 'x64', prod: 'chromiumcrx', prodversion: storeBrowser };
  for (const [key, value] of Object.entries({ ...asked, acceptformat: 'crx2,crx3', x: `id=${id}&uc` }))
    address.searchParams.set(key, value);
  const response = await fetch(address, { signal }).catch((error: Error) => {
    throw errors.chrome_store_unavailable({
      detail: (error.cause as Error | undefined)?.message ?? error.message,
    });
  });
  if (response.status === 204 || response.status === 404)
    throw errors.invalid_input({ detail: `The store has no extension '${id}', or none for ${os}.` });
  if (!response.ok || !response.body)
    throw errors.chrome_store_unavailable({ detail: `it answered ${response.status}` });
  if (Number(response.headers.get('content-length')) > mostZipBytes)
    throw errors.payload_too_large({ limit: mostZipBytes });
  for await (const piece of response.body) yield Buffer.from(piece as Uint8Array);
}

/** Where the zip begins in the CRX. */
export async function zipIn(crx: Upload): Promise<number> {
  const file = await open(crx.path);
  try {
    const { buffer: head, bytesRead } = await file.read(Buffer.alloc(16), 0, 16, 0);
    const from = zipOffset(head.subarray(0, bytesRead));
    if (from !== undefined && from + 4 <= crx.size) {
      const { buffer } = await file.read(Buffer.alloc(4), 0, 4, from);
      if (buffer.equals(Buffer.from('PK\x03\x04', 'latin1'))) return from;
    }
    throw errors.chrome_store_unavailable({ detail: 'its answer is not an extension' });
  } finally {
    await file.close();
  }
}
