import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiError } from './client.ts';
import { told, useStreaming } from './events.ts';
import { useIdentity } from './identity.ts';

/** How often a visible screen is read again while no events arrive. Hidden tabs are not read at all. */
const EVERY_MS = 2000;
/** With events: no event tells of the memory of a session, or of its page. */
const EVERY_MS_TOLD = 10_000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // What the service refused it refuses again. What did not arrive is tried with the next round.
      retry: false,
      staleTime: 1000,
      refetchOnWindowFocus: true,
    },
  },
});

/**
 * What the service has now, kept up to date while it is shown. This is the one place that knows how: by events (events.ts), and by asking
 * for what they do not tell, or when the stream is not there.
 */
export function useLive<T>(
  key: readonly unknown[],
  read: () => Promise<T>,
  { every = EVERY_MS, enabled = true }: { every?: number | false; enabled?: boolean } = {},
) {
  const who = useIdentity();
  const isTold = useStreaming() && told.has(String(key[0]));
  const pause = every !== false && isTold ? Math.max(every, EVERY_MS_TOLD) : every;
  return useQuery<T, ApiError>({
    queryKey: [who?.project ?? '', ...key],
    queryFn: read,
    enabled,
    refetchInterval: ({ state }) => (state.error instanceof ApiError && state.error.status === 404 ? false : pause),
    placeholderData: keepPreviousData,
  });
}

/** Changes something, and has every screen read again what it shows. */
export function useAct<Input, Result>(act: (input: Input) => Promise<Result>, done?: (result: Result) => void) {
  const client = useQueryClient();
  return useMutation<Result, ApiError, Input>({
    mutationFn: act,
    onSuccess: (result) => done?.(result),
    onSettled: () => client.invalidateQueries(),
  });
}
