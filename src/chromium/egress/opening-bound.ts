import { EgressError } from './refusals.ts';

export type Opening = ReturnType<typeof openingBound>;

/**
 * Bounds the connections to the network that a session has opened at the same time, over all its ways out. A connection for a plain http
 * request does not end with its client, so the limit of clients does not limit these.
 */
export function openingBound(most: number) {
  let count = 0;
  return async <T>(connect: () => Promise<T>): Promise<T> => {
    if (count >= most) {
      const message = `This session is opening ${most} connections, and that is the limit.`;
      throw new EgressError('too_many_connections', message);
    }
    count++;
    try {
      return await connect();
    } finally {
      count--;
    }
  };
}
