import { api } from '../api/client.ts';
import { useLive } from '../api/live.ts';

/** Whether the service works, part by part. The answer has the same schema when the service is not ready, with another status. */
async function readiness() {
  const { data, error } = await api.GET('/ready');
  return (data ?? error) as NonNullable<typeof data>;
}

export const useReadiness = () => useLive(['ready'], readiness);
