import { entry, final } from './entry.ts';

/** Deployments, apps and invocations. */
export const deploymentErrors = {
  deployment_not_found: entry(
    404,
    'No deployment has that id.',
    (p: { id: string }) => `No deployment is '${p.id}'. GET /deployments lists them.`,
  ),
  deployment_queue_full: entry(
    429,
    'The queue of deployments that wait for their build is full.',
    (p: { most: number }) =>
      `${p.most} deployments of the project wait for their build, which is the maximum. Wait until some are built, or delete some.`,
  ),
  app_not_found: entry(
    404,
    'No running deployment has that app, version or action.',
    (p: { detail: string }) => `${p.detail} GET /apps lists the apps that can be invoked.`,
  ),
  invocation_not_found: entry(
    404,
    'No invocation has that id.',
    (p: { id: string }) => `No invocation is '${p.id}'. GET /invocations lists them.`,
  ),
  invocation_over: entry(
    400,
    'The invocation has ended.',
    (p: { id: string; status: string }) =>
      `Invocation '${p.id}' has ${p.status}. Only a queued or running invocation can be changed or have a browser.`,
  ),
  invocation_limit_reached: final(
    429,
    'The project runs its maximum of invocations.',
    (p: { cap: number }) =>
      `The project runs ${p.cap} invocations, which is its max_concurrent_invocations. Invoke with async: true to wait in line, or raise it.`,
  ),
  large_texts_full: entry(
    503,
    'The service checks its maximum of payloads and outputs with many values.',
    (p: { field: string }) =>
      `${p.field} has many values, and the service is too busy to check it. Try again in a moment, or send less at once.`,
  ),
  invocation_queue_full: entry(
    529,
    'The queue of invocations is full.',
    (p: { most: string }) => `${p.most} of the project are waiting. Try again later.`,
  ),
};
