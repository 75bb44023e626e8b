/**
 * A rule for oxlint: a promise that is awaited later than it was started has a handler from the start.
 *
 *   const cookies = ask();          // it may reject from here on
 *   const frames = await look();    // if this throws, or takes longer, that rejection has no handler
 *   await cookies;
 *
 * The rule needs no types: a variable that is awaited holds a promise. `started(...)` of src/lib/started.ts is the remedy.
 */
const lateAwaits = {
  meta: {
    type: 'problem',
    messages: {
      late: "'{{name}}' is awaited after another await (line {{line}}). If it rejects meanwhile, or if that throws, its rejection is unhandled. Write `const {{name}} = started(...)` with `started` of src/lib/started.ts, or await both with Promise.all.",
    },
  },
  create(context) {
    /** The functions around the current node, each with its pauses and the variables that may hold a promise. */
    const around = [];
    const enter = () => void around.push({ pauses: [], declared: [] });
    const pause = (node) => void around.at(-1)?.pauses.push(node);

    const leave = () => {
      const { pauses, declared } = around.pop();
      for (const declarator of declared) {
        const [variable] = context.sourceCode.getDeclaredVariables(declarator);
        const uses = (variable?.references ?? [])
          .map(({ identifier }) => identifier)
          .filter((use) => use !== declarator.id);
        const first = uses.sort((a, b) => a.range[0] - b.range[0]).find(isHandling);
        if (!first || !uses.some(isAwaited)) continue;
        const between = pauses.find(
          ({ range }) => range[0] >= declarator.range[1] && range[0] < first.range[0] && range[1] < first.range[1],
        );
        if (between)
          context.report({
            node: declarator,
            messageId: 'late',
            data: { name: declarator.id.name, line: String(between.loc.start.line) },
          });
      }
    };

    return {
      Program: enter,
      'Program:exit': leave,
      FunctionDeclaration: enter,
      'FunctionDeclaration:exit': leave,
      FunctionExpression: enter,
      'FunctionExpression:exit': leave,
      ArrowFunctionExpression: enter,
      'ArrowFunctionExpression:exit': leave,
      AwaitExpression: pause,
      YieldExpression: pause,
      ForOfStatement: (node) => node.await && pause(node.right),
      VariableDeclarator(node) {
        if (node.id.type === 'Identifier' && node.init && startsPromise(node.init)) around.at(-1)?.declared.push(node);
      },
    };
  },
};

/** Whether an expression may start work that rejects later. Calls with a handler at their end do not. */
function startsPromise(node) {
  switch (node.type) {
    case 'ConditionalExpression':
      return startsPromise(node.consequent) || startsPromise(node.alternate);
    case 'LogicalExpression':
      return startsPromise(node.left) || startsPromise(node.right);
    case 'ChainExpression':
    case 'TSNonNullExpression':
    case 'TSAsExpression':
      return startsPromise(node.expression);
    case 'NewExpression': // without the function that rejects, only its executor can fail
      return node.callee.name === 'Promise' && node.arguments[0]?.params?.length > 1;
    case 'CallExpression':
      return node.callee.name !== 'started' && !hasHandler(node) && !isPromiseMethod(node, ['allSettled', 'resolve']);
    default:
      return false;
  }
}

/** `x.catch(...)`, `x.then(done, failed)`. */
function hasHandler({ callee, arguments: given }) {
  const method = callee.type === 'MemberExpression' ? callee.property.name : undefined;
  if (method === 'finally') return callee.object.type === 'CallExpression' && hasHandler(callee.object);
  return method === 'catch' || (method === 'then' && given.length > 1);
}

function isPromiseMethod(node, names) {
  return (
    node?.type === 'CallExpression' &&
    node.callee.type === 'MemberExpression' &&
    node.callee.object.name === 'Promise' &&
    names.includes(node.callee.property.name)
  );
}

const together = ['all', 'allSettled', 'any', 'race'];

/** `await x`, `Promise.all([x, y])`, `Promise.all(x)`: such a variable holds one or several promises. */
function isAwaited({ parent }) {
  if (parent.type === 'AwaitExpression') return true;
  const outer = parent.type === 'SpreadElement' ? parent.parent : parent;
  return isPromiseMethod(outer.type === 'ArrayExpression' ? outer.parent : outer, together);
}

/** Whether a rejection has somewhere to go from this use on: it is awaited, returned, given away, or has a handler. */
function isHandling(use) {
  const { parent } = use;
  if (isAwaited(use)) return true;
  if (parent.type === 'MemberExpression' && parent.object === use && parent.parent.type === 'CallExpression')
    return hasHandler(parent.parent) || parent.property.name === 'then';
  return parent.type === 'CallExpression' || parent.type === 'ReturnStatement' || parent.type === 'Property';
}

export default { meta: { name: 'corral' }, rules: { 'late-awaits': lateAwaits } };
