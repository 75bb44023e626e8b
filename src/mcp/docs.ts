import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The guides are the Markdown files in docs/ of the package, so that searching needs no network. */
const folder = join(import.meta.dirname, '..', '..', 'docs');
const MOST_SECTIONS = 5;
const MOST_CHARACTERS = 2500;

interface Section {
  page: string;
  title: string;
  text: string;
}

let sections: Promise<Section[]> | undefined;

export async function searchDocs(query: string): Promise<string> {
  sections ??= readSections();
  const found = rank(await sections, query).slice(0, MOST_SECTIONS);
  if (found.length === 0)
    return `Nothing about '${query}'. Try other words, or read the resource corral://docs/README for the list of pages.`;
  return found
    .map(({ page, title, text }) => `## ${title} (corral://docs/${page})\n${text.slice(0, MOST_CHARACTERS)}`)
    .join('\n\n');
}

export async function readPage(name: string): Promise<string | undefined> {
  const file = `${name}.md`;
  return (await pageFiles()).includes(file) ? readFile(join(folder, file), 'utf8') : undefined;
}

export async function pageFiles(): Promise<string[]> {
  return (await readdir(folder)).filter((file) => file.endsWith('.md')).sort();
}

async function readSections(): Promise<Section[]> {
  const all = await Promise.all(
    (await pageFiles()).map(async (file) =>
      sectionsOf(file.replace(/\.md$/, ''), await readFile(join(folder, file), 'utf8')),
    ),
  );
  return all.flat();
}

export function sectionsOf(page: string, text: string): Section[] {
  return text
    .split(/^(?=#{1,3} )/m)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const [head = '', ...lines] = part.split('\n');
      return { page, title: head.replace(/^#+ /, ''), text: lines.join('\n').trim() };
    });
}

/** Sections with most of the words; a word in a title, or a word that is rare in the sections, counts more. */
export function rank(all: readonly Section[], query: string): Section[] {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}_]{2,}/gu) ?? [])];
  const scored = all.map((section) => ({
    section,
    score: 0,
    body: section.text.toLowerCase(),
    title: section.title.toLowerCase(),
  }));
  for (const word of words) {
    const having = scored.filter(({ body, title }) => body.includes(word) || title.includes(word));
    const weight = Math.log(1 + all.length / (1 + having.length));
    for (const one of having) {
      const times = one.body.split(word).length - 1;
      one.score += weight * (1 + Math.log(1 + times) + (one.title.includes(word) ? 3 : 0));
    }
  }
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ section }) => section);
}
