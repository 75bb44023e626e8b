/**
 * A rule for oxlint: a function has at most 80 lines of its own. A function inside it counts as one line, since it is read by itself: a
 * factory is a list of such functions. So do the lines of a literal, which is a table.
 */
const most = 80;
const functions = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'];
const tables = ['ObjectExpression', 'ArrayExpression', 'TemplateLiteral'];

const ownLines = {
  meta: {
    type: 'suggestion',
    messages: {
      long: 'This function has {{lines}} lines of its own; {{most}} are allowed. Move the part that can be named into a function.',
    },
  },
  create(context) {
    /** The functions and tables around the current node, each with the lines that are not its own. */
    const around = [];
    const enter = () => void around.push(0);
    const leave = (node) => {
      const others = around.pop();
      const lines = node.loc.end.line - node.loc.start.line + 1;
      if (around.length > 0) around[around.length - 1] += lines - 1;
      if (functions.includes(node.type) && lines - others > most)
        context.report({ node, messageId: 'long', data: { lines: String(lines - others), most: String(most) } });
    };
    return Object.fromEntries(
      [...functions, ...tables].flatMap((type) => [
        [type, enter],
        [`${type}:exit`, leave],
      ]),
    );
  },
};

export default { meta: { name: 'corral-lines' }, rules: { 'own-lines': ownLines } };
