import { CdpError } from '../cdp/local-client.ts';

/** A CDP command of the BiDi mapper failed. */
export class MapperCdpError extends CdpError {}

/** A CDP command of the BiDi mapper gets no answer: its session has ended. */
export class MapperCloseError extends MapperCdpError {}

/**
 * Whether an unhandled rejection comes from the mapper. The mapper sends commands in response to events and does not await all of them.
 * Those known are answered so that they cannot fail (`UNATTENDED` in mapper.ts); this covers the others.
 */
export function isMapperFault(reason: unknown): boolean {
  if (reason instanceof MapperCdpError) return true;
  return reason instanceof Error && /[\\/]node_modules[\\/]chromium-bidi[\\/]/.test(reason.stack ?? '');
}
