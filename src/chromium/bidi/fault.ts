import { CdpError } from '../cdp/local-client.ts';

/** A CDP command of the BiDi mapper failed. */
export class MapperCdpError extends CdpError {}

/** A CDP command of the BiDi mapper will not be answered: its session is gone. */
export class MapperCloseError extends MapperCdpError {}

/** The browser said more than can be translated. */
export class TooLarge extends Error {
  override readonly name = 'TooLarge';
}

/**
 * Whether a rejection that nobody handled is one the mapper let fall. It starts things in answer to events and does not
 * look back at all of them; those we know of are answered so that they cannot fail, and this is for the others.
 */
export function isMapperFault(reason: unknown): boolean {
  if (reason instanceof MapperCdpError) return true;
  return reason instanceof Error && /[\\/]node_modules[\\/]chromium-bidi[\\/]/.test(reason.stack ?? '');
}
