import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { marked, type Tokens } from 'marked';

/** The guides are the Markdown files in docs/ of the package. */
const folder = join(import.meta.dirname, '..', '..', 'docs');

/** The guide as a page, or undefined if the name is unknown. `index` is the list of all. */
export async function guide(name: string): Promise<string | undefined> {
  const file = `${name === 'index' ? 'README' : name}.md`;
  if (!(await readdir(folder)).includes(file)) return undefined;
  const text = await readFile(join(folder, file), 'utf8');
  const title = /^# (.*)$/m.exec(text)?.[1] ?? name;
  return page(title, await marked.parse(text, { renderer: new GuideRenderer() }));
}

/** A picture of a guide, or undefined if the name is unknown. */
export async function picture(name: string): Promise<Buffer | undefined> {
  const pictures = join(folder, 'pictures');
  return (await readdir(pictures)).includes(name) ? readFile(join(pictures, name)) : undefined;
}

/** Headings get ids as targets of links. Links between the files become links between the pages. */
class GuideRenderer extends marked.Renderer {
  override heading({ tokens, depth, text }: Tokens.Heading): string {
    return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
  }
  override link({ href, tokens }: Tokens.Link): string {
    const inner = this.parser.parseInline(tokens);
    const target = linkTo(href);
    return target === undefined ? inner : `<a href="${escape(target)}">${inner}</a>`;
  }
}

const slug = (text: string) =>
  text
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replace(/\s+/g, '-');

/** Files that are not guides (examples, sources) are in the repository and not in the service: no link. */
function linkTo(href: string): string | undefined {
  if (/^(https?:|#)/.test(href)) return href;
  const [, name, anchor = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  return name && `/docs/guides/${name === 'README' ? '' : name}${anchor}`;
}

const escape = (text: string) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

const page = (title: string, body: string) => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${escape(title)} · Corral</title>
    <link rel="icon" href="data:," />
    <link rel="stylesheet" href="/docs/assets/style.css" />
  </head>
  <body class="guide">
    <nav><a href="/docs">API reference</a> · <a href="/docs/guides">Guides</a></nav>
    <main>${body}</main>
  </body>
</html>
`;
