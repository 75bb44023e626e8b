import { entry } from './entry.ts';

/** Extensions and the Chrome web store. */
export const extensionErrors = {
  extension_refused: entry(
    400,
    'Chromium does not load the extension.',
    (p: { extension: string; detail: string }) => `Extension '${p.extension}' was not loaded: ${p.detail}`,
  ),
  extension_not_found: entry(
    404,
    'No extension has that id or name.',
    (p: { extension: string }) => `No extension is '${p.extension}'. GET /extensions lists them.`,
  ),
  chrome_store_unavailable: entry(
    500,
    'The Chrome web store cannot be reached or sent an unexpected answer.',
    (p: { detail: string }) => `The Chrome web store cannot be used (CORRAL_CHROME_STORE_URL): ${p.detail}.`,
  ),
};
