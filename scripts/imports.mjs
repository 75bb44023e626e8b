/** Every import of a source, also of types and by `import()`, with its place. */
export function importsOf(code) {
  const statements = /^[ \t]*(?:import|export)\b(\s+type\b)?(?:[^'"`;]*?\bfrom)?\s*['"]([^'"]+)['"]/gm;
  const calls = /\b(?:import|require)\(\s*()['"]([^'"]+)['"]/g;
  return [...code.matchAll(statements), ...code.matchAll(calls)].map((match) => ({
    // The line of the specifier's statement, not of the blank lines before it.
    index: match.index + match[0].length - match[0].trimStart().length,
    specifier: match[2],
    typeOnly: Boolean(match[1]) || /^\s*import\s*\{(\s*type\s[^,}]+,?)+\s*\}/.test(match[0]),
  }));
}

/** Blanks comments out, keeping the lines. Only free-standing ones, so that 'http://…' and '**\/*.ts' stay whole. */
export function withoutComments(code) {
  return code.replace(/(?<=^|\s)(?:\/\*[\s\S]*?\*\/|\/\/[^\n]*)/g, (comment) => comment.replace(/[^\n]/g, ' '));
}
