import { Table } from '@mantine/core';

/** The cells of a node in every list of nodes. */
export function NodeCells({
  node,
}: {
  node: { public_url: string; running: number; capacity: number; version: string };
}) {
  return (
    <>
      <Table.Td className="wrap">{node.public_url}</Table.Td>
      <Table.Td className="nowrap">
        {node.running} of {node.capacity}
      </Table.Td>
      <Table.Td className="wide-only">{node.version}</Table.Td>
    </>
  );
}
