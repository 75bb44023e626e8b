import { Group, Text } from '@mantine/core';
import type { ComponentProps } from 'react';
import type { Column } from './listing.tsx';
import { Destroy } from './parts.tsx';

/** The last column of a list with rows that can only be removed. */
export const removal = <T,>(
  of: (item: T) => Pick<ComponentProps<typeof Destroy>, 'title' | 'ends' | 'act'>,
  label = 'Delete',
): Column<T> => ({
  name: '',
  cell: (item) => (
    <Group justify="flex-end">
      <Destroy label={label} size="xs" subtle {...of(item)} />
    </Group>
  ),
});

/** The reason of a state. */
export const reason: Column<{ status_reason?: string | null }> = {
  name: 'Reason',
  wide: true,
  cell: ({ status_reason }) => (
    <Text size="sm" c="dimmed" className="clip">
      {status_reason ?? ''}
    </Text>
  ),
};
