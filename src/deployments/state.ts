import { lifecycle } from '../lib/lifecycle.ts';

export const deploymentLife = lifecycle(
  {
    queued: 'The source is stored; a node will build it.',
    in_progress: 'A node builds it.',
    running: 'Its actions can be invoked.',
    stopped: 'It was deleted or replaced. Its key, its source and its build are gone.',
    failed: 'It was not built; status_reason says why.',
  },
  {
    build_started: { from: ['queued'], to: 'in_progress' },
    build_lost: { from: ['in_progress'], to: 'queued' },
    built: { from: ['in_progress'], to: 'running' },
    build_failed: { from: ['queued', 'in_progress'], to: 'failed' },
    stop: { from: ['queued', 'in_progress', 'running'], to: 'stopped' },
  },
);

export const invocationLife = lifecycle(
  {
    queued: 'It waits for a node with room.',
    running: 'A worker runs the action.',
    succeeded: 'The action returned; output has the result.',
    failed: 'The action threw, was cancelled, ran too long or lost its process; status_reason says which.',
  },
  {
    claimed: { from: ['queued'], to: 'running' },
    succeeded: { from: ['queued', 'running'], to: 'succeeded' },
    failed: { from: ['queued', 'running'], to: 'failed' },
    node_lost: { from: ['running'], to: 'failed' },
  },
);

export type DeploymentStatus = keyof typeof deploymentLife.states;
export type DeploymentEvent = keyof typeof deploymentLife.events;
export type InvocationStatus = keyof typeof invocationLife.states;
