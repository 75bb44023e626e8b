import { expect, test } from 'vitest';
import { deploymentLife, invocationLife } from './state.ts';

test('a deployment ends as stopped or failed, and an invocation as succeeded or failed', () => {
  expect(deploymentLife.stateNames.filter(deploymentLife.isFinal)).toEqual(['stopped', 'failed']);
  expect(invocationLife.stateNames.filter(invocationLife.isFinal)).toEqual(['succeeded', 'failed']);
});
