import { Button, Group, ScrollArea, Table, Text } from '@mantine/core';
import { memo, type ReactNode } from 'react';
import type { Page } from '../api/client.ts';
import { Refusal, Waiting } from './parts.tsx';

export const pageSize = 50;

export interface Column<T> {
  name: string;
  cell: (item: T) => ReactNode;
  /** Left out on small screens. */
  wide?: boolean;
}

/** Drawn again only when its item has changed: unchanged items keep their identity across answers. */
const Row = memo(function Row<T>({ item, columns }: { item: T; columns: Column<T>[] }) {
  return (
    <Table.Tr>
      {columns.map(({ name, cell, wide }) => (
        <Table.Td key={name} className={wide ? 'wide-only' : undefined}>
          {cell(item)}
        </Table.Td>
      ))}
    </Table.Tr>
  );
}) as <T>(props: { item: T; columns: Column<T>[] }) => ReactNode;

/** A page of a list. One page is on the screen at a time, so that a thousand rows cost as much as fifty. */
export function Listing<T>(props: {
  label: string;
  page: { data: Page<T> | undefined; error: Error | null; isPending: boolean };
  columns: Column<T>[];
  /** Draws the page in another way than as a table. */
  draw?: (items: readonly T[]) => ReactNode;
  idOf: (item: T) => string;
  offset?: number;
  /** The rows of a page, if the number differs from other screens. */
  size?: number;
  turn?: (offset: number) => void;
  empty: ReactNode;
}) {
  const { page, columns, offset = 0, size = pageSize, turn } = props;
  if (page.isPending) return <Waiting />;
  const items = page.data?.items ?? [];
  return (
    <>
      <Refusal error={page.error} />
      {items.length === 0 && !page.error && offset === 0 && props.empty}
      {items.length > 0 && props.draw?.(items)}
      {items.length > 0 && !props.draw && (
        <ScrollArea type="auto">
          <Table
            highlightOnHover
            highlightOnHoverColor="var(--row-hover)"
            verticalSpacing="xs"
            aria-label={props.label}
          >
            <Table.Thead>
              <Table.Tr>
                {columns.map(({ name, wide }) => (
                  <Table.Th key={name} className={wide ? 'wide-only' : undefined}>
                    {name}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {items.map((item) => (
                <Row key={props.idOf(item)} item={item} columns={columns} />
              ))}
            </Table.Tbody>
          </Table>
        </ScrollArea>
      )}
      {turn && (offset > 0 || page.data?.more) && (
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            {items.length > 0 ? `${offset + 1} to ${offset + items.length}` : 'No more'}
          </Text>
          <Group gap="xs">
            <Button
              variant="default"
              size="xs"
              disabled={offset === 0}
              onClick={() => turn(Math.max(0, offset - size))}
            >
              Newer
            </Button>
            <Button variant="default" size="xs" disabled={!page.data?.more} onClick={() => turn(offset + size)}>
              Older
            </Button>
          </Group>
        </Group>
      )}
    </>
  );
}
