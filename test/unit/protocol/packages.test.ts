import { describe, expect, it } from 'vitest';
import type { TreeFile } from '../../../src/protocol/types.ts';
import { validateSkill } from '../../../src/protocol/validate.ts';
import { file } from './support.ts';

const md = (name: string, fields: string, body: string) =>
  file('SKILL.md', `---\nname: ${name}\n${fields}\n---\n\n${body}\n`);
const dockerfile = [
  'FROM registry.example.com/cubesandbox-base:2026.16',
  'RUN apt-get update \\',
  '    && apt-get install -y --no-install-recommends ffmpeg python3 python3-pip',
  'RUN pip install pillow',
].join('\n');

/** The packages that the protocol shows (§11), and the samples of the runtime enumeration (A3 §7), with the same shape. */
const PACKAGES: [name: string, runtime: string, files: TreeFile[]][] = [
  [
    'deploy-helper',
    'prompt-only',
    [
      md(
        'deploy-helper',
        'description: 帮助准备发布清单。当用户说"准备发布"时触发。',
        '1. 询问目标环境\n2. 读取 `references/checklist.md`\n3. 输出报告，引用 `$TFROBOT_SESSION_ID`',
      ),
      file('references/checklist.md', '- [ ] tag\n'),
    ],
  ],
  [
    'csv-aggregator',
    'cubesandbox::python',
    [
      md(
        'csv-aggregator',
        'description: 把多个 CSV 文件聚合成报告。\nruntime: cubesandbox::python\ncompatibility: 已预装 pandas / python-docx；列规则参见 references/column-mapping.md',
        '1. 运行 `$TFROBOT_SKILL_DIR/scripts/main.py`',
      ),
      file('.skillenv', 'LOG_LEVEL=INFO\n# 注：无需用户 vault\n'),
      file('scripts/main.py', 'import os\nprint(os.environ["TFROBOT_SKILL_DIR"])\n'),
      file('references/column-mapping.md', '| a | b |\n'),
      file('assets/report-template.docx', Buffer.from([0x50, 0x4b, 0x03, 0x04, 0xff])),
    ],
  ],
  [
    'video-thumbnail',
    'cubesandbox',
    [
      md(
        'video-thumbnail',
        'description: 对视频抽取关键帧。当用户要求"抽缩略图"时触发。\nruntime: cubesandbox\ncompatibility: 自带镜像包含 ffmpeg 7.x；构建期约 90 秒',
        '运行 `$TFROBOT_SKILL_DIR/scripts/thumb.py`。',
      ),
      file('.cubesandbox.dockerfile', dockerfile),
      file('.skillenv', '# .skillenv\nINTERNAL_S3_TOKEN=\n'),
      file('scripts/thumb.py', 'print()\n', '100755'),
    ],
  ],
  [
    'claude-second-opinion',
    'prompt-only',
    [md('claude-second-opinion', 'description: 让独立的模型给出第二意见。', '将最后一条消息原样发送。')],
  ],
  [
    'notion-page-summary',
    'cubesandbox::python',
    [
      md(
        'notion-page-summary',
        'description: 抓取 Notion 页面并生成摘要。\nruntime: cubesandbox::python\ncompatibility: 需要集成 token (vault key 名：NOTION_TOKEN)',
        '运行 `$TFROBOT_SKILL_DIR/scripts/summarize.py`',
      ),
      file('.skillenv', '# .skillenv\nNOTION_TOKEN=\n'),
    ],
  ],
  [
    'monthly-report',
    'cubesandbox::python',
    [
      md(
        'monthly-report',
        'description: 从 Excel 账单生成 PDF 报告。\nruntime: cubesandbox::python\ncompatibility: 输出 PDF 写入 $TFROBOT_SKILL_DIR/out/。',
        '运行 scripts/build_report.py',
      ),
    ],
  ],
  [
    'slack-thread-summarize',
    'e2b::node',
    [
      md(
        'slack-thread-summarize',
        'description: 抓取 Slack 线程并生成摘要。\nruntime: e2b::node\ncompatibility: 需要 Bot OAuth token (vault key 名：SLACK_BOT_TOKEN)',
        '运行 `$TFROBOT_SKILL_DIR/scripts/summarize.ts`（用 `npx tsx`）',
      ),
      file('.skillenv', '# .skillenv\nSLACK_BOT_TOKEN=\n'),
    ],
  ],
];

describe('the packages that the protocol shows', () => {
  it.each(PACKAGES)('%s is valid and runs as %s', (directory, runtime, files) => {
    const report = validateSkill({ directory, path: `plugins/docs/skills/${directory}`, files });
    expect([report.violations, report.warnings]).toEqual([[], []]);
    expect(report.frontmatter).toMatchObject({ name: directory, runtime });
    expect(report.files).toHaveLength(files.length);
  });
});
