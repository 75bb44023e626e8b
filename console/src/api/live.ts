import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { ApiError } from './client.ts';
import { keysWithEvents, useStreaming } from './events.ts';
import { useIdentity } from './identity.ts';

/** How often a visible screen is read again while no events arrive. Hidden tabs are not updated. */
const EVERY_MS = 2000;
/** The interval while events arrive: no event reports the memory of a session or its page. */
const EVERY_MS_WITH_EVENTS = 10_000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refused request would be refused again. A failed one is repeated with the next interval.
      retry: false,
      staleTime: 1000,
      refetchOnWindowFocus: true,
    },
  },
});

/**
 * The current state of the service, kept up to date while it is shown: by events (events.ts), and by polling for values without events or
 * while no stream is open.
 */
export function useLive<T>(
  key: readonly unknown[],
  read: () => Promise<T>,
  { every = EVERY_MS, enabled = true }: { every?: number | false; enabled?: boolean } = {},
) {
  const identity = useIdentity();
  const hasEvents = useStreaming() && keysWithEvents.has(String(key[0]));
  const pause = every !== false && hasEvents ? Math.max(every, EVERY_MS_WITH_EVENTS) : every;
  return useQuery<T, ApiError>({
    queryKey: [identity?.project ?? '', ...key],
    queryFn: read,
    enabled,
    refetchInterval: ({ state }) => (state.error instanceof ApiError && state.error.status === 404 ? false : pause),
    placeholderData: keepPreviousData,
  });
}

/** Sends a change, and then updates every screen. */
export function useAct<Input, Result>(act: (input: Input) => Promise<Result>, done?: (result: Result) => void) {
  const client = useQueryClient();
  return useMutation<Result, ApiError, Input>({
    mutationFn: act,
    onSuccess: (result) => done?.(result),
    onSettled: () => client.invalidateQueries(),
  });
}
