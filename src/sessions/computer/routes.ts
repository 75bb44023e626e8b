import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { empty, refusals } from '../../api/schema.ts';
import { Impossible, type Action, type Computer } from '../../chromium/computer/computer.ts';
import { errors } from '../../errors.ts';
import { ofBrowser } from '../refusals.ts';
import { heldSessions } from '../held-routes.ts';
import type { SessionService } from '../service.ts';
import { actionOf, actionsOf } from './actions.ts';
import {
  Batch,
  ClickMouse,
  ClipboardContent,
  DragMouse,
  MousePosition,
  MoveMouse,
  Nothing,
  Ok,
  PressKey,
  Screenshot,
  Scroll,
  SetCursor,
  TypeText,
  WriteClipboard,
} from './schema.ts';

const tags = ['browsers'];
const Id = Type.Object({ id: Type.String() });

const one =
  <T>(action: (body: T) => Action) =>
  (body: T) => [action(body)];

/** The paths that perform actions and have no response body. */
const inputs: [string, string, string, TSchema, (body: never) => Action[]][] = [
  ['click_mouse', 'clickMouse', 'Click, or press or release a button.', ClickMouse, one(actionOf.click_mouse)],
  [
    'move_mouse',
    'moveMouse',
    'Move the mouse, along a natural path unless smooth is false.',
    MoveMouse,
    one(actionOf.move_mouse),
  ],
  ['drag_mouse', 'dragMouse', 'Press a button, move along a path, release it.', DragMouse, one(actionOf.drag_mouse)],
  ['scroll', 'scroll', 'Turn the wheel at a point.', Scroll, one(actionOf.scroll)],
  ['type', 'typeText', 'Type a text.', TypeText, one(actionOf.type_text)],
  ['press_key', 'pressKey', 'Press keys and chords.', PressKey, one(actionOf.press_key)],
  [
    'batch',
    'batchComputerAction',
    'Run several actions in order, without others in between, until one fails.',
    Batch,
    actionsOf,
  ],
];

/** Mouse, keyboard, screen and clipboard of a session. */
export function computerRoutes({ sessions }: { sessions: SessionService }): FastifyPluginAsyncTypebox {
  const held = heldSessions({ sessions });

  const using = <T>(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (computer: Computer, gone: AbortSignal) => Promise<T>,
  ): Promise<T> =>
    held
      .using(request, reply, ({ held, gone }) => work(held.engine.computer, gone))
      .catch((error: Error) => {
        throw error instanceof Impossible ? errors.invalid_input({ detail: error.message }) : error;
      });

  const act = (request: FastifyRequest, reply: FastifyReply, actions: Action[]) =>
    using(request, reply, (computer, gone) => computer.act(actions, gone));

  return async (app) => {
    for (const [path, operationId, summary, body, actions] of inputs) {
      app.post(
        `/browsers/:id/computer/${path}`,
        {
          schema: {
            operationId,
            summary,
            tags,
            params: Id,
            body,
            response: { 200: empty('Done.'), ...refusals(...ofBrowser) },
          },
        },
        async (request, reply) => {
          await act(request, reply, actions(request.body as never));
          return reply.code(200).send(undefined as never);
        },
      );
    }

    app.post(
      '/browsers/:id/computer/cursor',
      {
        schema: {
          operationId: 'setCursor',
          summary: 'Hide the cursor from screenshots, or show it.',
          tags,
          params: Id,
          body: SetCursor,
          response: { 200: Ok, ...refusals(...ofBrowser) },
        },
      },
      async (request, reply) => {
        await act(request, reply, [actionOf.set_cursor(request.body)]);
        return { ok: true };
      },
    );

    app.post(
      '/browsers/:id/computer/screenshot',
      {
        schema: {
          operationId: 'takeScreenshot',
          summary: 'Take a screenshot of the display, or of the active page of a headless session.',
          tags,
          params: Id,
          body: Screenshot,
          response: {
            200: { description: 'A PNG.', content: { 'image/png': { schema: { type: 'string', format: 'binary' } } } },
            ...refusals(...ofBrowser),
          },
        },
      },
      async (request, reply) => {
        const { region } = request.body;
        const picture = await using(request, reply, (computer) => computer.screenshot(region));
        return reply.type('image/png').send(picture as never);
      },
    );

    app.post(
      '/browsers/:id/computer/get_mouse_position',
      {
        schema: {
          operationId: 'getMousePosition',
          summary: 'Get the position of the mouse.',
          tags,
          params: Id,
          body: Nothing,
          response: { 200: MousePosition, ...refusals(...ofBrowser) },
        },
      },
      (request, reply) => using(request, reply, (computer) => computer.pointer()),
    );

    app.post(
      '/browsers/:id/computer/clipboard/read',
      {
        schema: {
          operationId: 'readClipboard',
          summary: 'Read the text in the clipboard.',
          tags,
          params: Id,
          body: Nothing,
          response: { 200: ClipboardContent, ...refusals(...ofBrowser) },
        },
      },
      (request, reply) => using(request, reply, async ({ clipboard }) => ({ text: await clipboard.read() })),
    );

    app.post(
      '/browsers/:id/computer/clipboard/write',
      {
        schema: {
          operationId: 'writeClipboard',
          summary: 'Write a text to the clipboard.',
          tags,
          params: Id,
          body: WriteClipboard,
          response: { 200: empty('Done.'), ...refusals(...ofBrowser) },
        },
      },
      async (request, reply) => {
        await using(request, reply, ({ clipboard }) => clipboard.write(request.body.text));
        return reply.code(200).send(undefined as never);
      },
    );
  };
}
