// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * vmmc: a virtual MMC host with a model of an SD card or an eMMC behind it, for tests.
 *
 * The kernel's MMC core and block driver drive it as they drive a real slot, and every command with its data phase passes
 * through execute(), where its time is charged. Writes leave the card in the programming state for a while, as real ones
 * do, so that CMD13 polling is real, too. Content is kept in memory, in pieces that exist once they are written.
 *
 * Times are module parameters and can be changed while it runs, in /sys/module/vmmc/parameters.
 */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmc/card.h>
#include <linux/mmc/core.h>
#include <linux/mmc/host.h>
#include <linux/mmc/mmc.h>
#include <linux/mmc/sd.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <asm/unaligned.h>

static unsigned int size_mb = 512;
module_param(size_mb, uint, 0444);
MODULE_PARM_DESC(size_mb, "capacity in MiB");
static unsigned int au_code = 9;
module_param(au_code, uint, 0444);
MODULE_PARM_DESC(au_code, "AU_SIZE in the SD status (9 = 4 MiB, 0 = not defined)");
static bool cmd23 = true;
module_param(cmd23, bool, 0444);
MODULE_PARM_DESC(cmd23, "the SCR offers CMD23");
static unsigned int read_us = 300;
module_param(read_us, uint, 0644);
MODULE_PARM_DESC(read_us, "fixed time of a read command");
static unsigned int write_us = 200;
module_param(write_us, uint, 0644);
MODULE_PARM_DESC(write_us, "fixed time of a write command before its data");
static unsigned int prog_us = 1000;
module_param(prog_us, uint, 0644);
MODULE_PARM_DESC(prog_us, "busy time after a write command");
static unsigned int block_ns = 25000;
module_param(block_ns, uint, 0644);
MODULE_PARM_DESC(block_ns, "time of 512 bytes on the bus");
static unsigned int erase_kb = 4096;
module_param(erase_kb, uint, 0644);
MODULE_PARM_DESC(erase_kb, "erase block in KiB");
static unsigned int cross_us;
module_param(cross_us, uint, 0644);
MODULE_PARM_DESC(cross_us, "extra time of a read that crosses an erase block boundary");
static unsigned int enter_us;
module_param(enter_us, uint, 0644);
MODULE_PARM_DESC(enter_us, "extra busy time of a write that begins in another erase block than the last one ended");
static bool emmc;
module_param(emmc, bool, 0444);
MODULE_PARM_DESC(emmc, "an eMMC instead of an SD card");
static unsigned int manfid = 0xfe;
module_param(manfid, uint, 0444);
MODULE_PARM_DESC(manfid, "manufacturer id in the CID of the SD card");
static bool health;
module_param(health, bool, 0444);
MODULE_PARM_DESC(health, "the SD card answers CMD56 with a health block as cards with Silicon Motion's SM2706 do");
static unsigned int amplify_x10 = 20;
module_param(amplify_x10, uint, 0644);
MODULE_PARM_DESC(amplify_x10, "tenths of a byte that reach the flash for each byte written");
static bool trace;
module_param(trace, bool, 0644);
MODULE_PARM_DESC(trace, "every command to the kernel log");

/* Card states as CURRENT_STATE of R1 gives them. */
enum { IDLE, READY, IDENT, STBY, TRAN, DATA, RCV, PRG };

#define PIECE 65536u
#define SD_RCA 0x1234u
#define APP 0x100u /* marks an application command */

struct vmmc {
	struct mmc_host *host;
	struct mmc_request *request;
	struct work_struct work;
	struct workqueue_struct *queue;
	struct xarray store;
	u64 sectors, last_block;
	u64 host_bytes;	/* written since the module was loaded */
	int state;
	bool app;	/* CMD55 came last */
	u32 preset;	/* blocks announced by CMD23 */
	u32 written;	/* blocks of the last write, for ACMD22 */
	u32 erase_from, erase_to;
	u32 cid[4], csd[4];
	u32 rca;	/* an SD card chooses it, an eMMC is given it */
	u8 ext_csd[512];
	ktime_t busy_until;
	u8 *bounce;
};

static struct platform_device *platform;
static struct vmmc *slot;

static void pass(u64 us)
{
	if (us >= 20)
		usleep_range(us, us + 5);
	else if (us)
		udelay(us);
}

static bool busy(struct vmmc *v)
{
	return ktime_before(ktime_get(), v->busy_until);
}

static void wait_while_busy(struct vmmc *v)
{
	s64 us = ktime_us_delta(v->busy_until, ktime_get());

	if (us > 0)
		pass(us);
}

static u32 status(struct vmmc *v)
{
	bool b = busy(v);
	int state = v->state == TRAN && b ? PRG : v->state;

	return state << 9 | (b ? 0 : R1_READY_FOR_DATA) | (v->app ? R1_APP_CMD : 0);
}

static void load(struct vmmc *v, u64 at, u8 *to, u32 n)
{
	while (n) {
		u32 skip = at % PIECE, part = min(n, PIECE - skip);
		u8 *piece = xa_load(&v->store, at / PIECE);

		if (piece)
			memcpy(to, piece + skip, part);
		else
			memset(to, 0, part);
		to += part;
		at += part;
		n -= part;
	}
}

static int save(struct vmmc *v, u64 at, const u8 *from, u32 n)
{
	while (n) {
		u32 skip = at % PIECE, part = min(n, PIECE - skip);
		u8 *piece = xa_load(&v->store, at / PIECE);

		if (!piece) {
			piece = kvzalloc(PIECE, GFP_KERNEL);
			if (!piece)
				return -ENOMEM;
			xa_store(&v->store, at / PIECE, piece, GFP_KERNEL);
		}
		memcpy(piece + skip, from, part);
		from += part;
		at += part;
		n -= part;
	}
	return 0;
}

/* A register or status sent as one data block. */
static void answer(struct mmc_data *d, const u8 *bytes, u32 n)
{
	n = min(n, d->blksz * d->blocks);
	sg_copy_from_buffer(d->sg, d->sg_len, bytes, n);
	d->bytes_xfered = n;
}

static void transfer(struct vmmc *v, struct mmc_command *c, struct mmc_data *d, bool multiple)
{
	bool write = d->flags & MMC_DATA_WRITE;
	u32 n = d->blksz * d->blocks;
	u64 at = (u64)c->arg * 512, first = at / 1024 / erase_kb, last = (at + n - 1) / 1024 / erase_kb;

	if (c->arg + (u64)d->blocks > v->sectors) {
		d->error = -ETIMEDOUT;
		return;
	}
	if (d->blksz != 512 || n > v->host->max_req_size) {
		d->error = -EINVAL;
		return;
	}
	wait_while_busy(v);
	if (write) {
		sg_copy_to_buffer(d->sg, d->sg_len, v->bounce, n);
		pass(write_us + (u64)block_ns * d->blocks / 1000);
		d->error = save(v, at, v->bounce, n);
		v->busy_until = ktime_add_us(ktime_get(), prog_us + (first != v->last_block ? enter_us : 0));
		v->last_block = last;
		v->written = d->blocks;
		v->host_bytes += n;
	} else {
		pass(read_us + (u64)block_ns * d->blocks / 1000 + (first != last ? cross_us : 0));
		load(v, at, v->bounce, n);
		sg_copy_from_buffer(d->sg, d->sg_len, v->bounce, n);
	}
	if (!d->error)
		d->bytes_xfered = n;
	/* Without a count announced the transaction stays open until CMD12. */
	v->state = multiple && !v->preset ? (write ? RCV : DATA) : TRAN;
}

/* A discard forgets whole pieces; a secure one leaves no byte of the range. */
static void erase(struct vmmc *v, bool secure)
{
	u64 from = (u64)v->erase_from * 512, to = ((u64)v->erase_to + 1) * 512;
	u64 i, n, end = to / PIECE;

	for (i = DIV_ROUND_UP(from, PIECE); i < end; i++)
		kvfree(xa_erase(&v->store, i));
	for (; secure && from < to; from += n) {
		u8 *piece = xa_load(&v->store, from / PIECE);

		n = min(to - from, PIECE - from % PIECE);
		if (piece)
			memset(piece + from % PIECE, 0, n);
	}
	v->busy_until = ktime_add_us(ktime_get(), prog_us);
}

/*
 * The block that CMD56 returns, as the layout of SM2706 has it: big-endian counts. A used card: every block has been erased 1000 times
 * before the module was loaded; one block in seventeen is spare.
 */
static void health_block(struct vmmc *v, u8 *b)
{
	u32 blocks = (u32)(v->sectors * 512 / 1024 / erase_kb) * 17 / 16;
	u32 fresh = (u32)div_u64(v->host_bytes * amplify_x10 / 10, erase_kb * 1024);
	u32 total = blocks * 1000 + fresh;

	memset(b, 0, 512);
	b[0] = 0x09;
	b[1] = 0x41;
	put_unaligned_be16(7, b + 24);	/* bad from the factory */
	b[26] = 2;			/* bad since */
	put_unaligned_be16(11, b + 30);	/* spare */
	put_unaligned_be32(900, b + 32);
	put_unaligned_be32(1100 + fresh, b + 36);
	put_unaligned_be32(total, b + 40);
	put_unaligned_be32(total / blocks, b + 44);
	put_unaligned_be16(30, b + 68);	/* rated, in hundreds */
	b[70] = 67;			/* life left, % */
	put_unaligned_be32(19, b + 76);	/* times powered on */
	memcpy(b + 80, "\x45\x3e\x98\x03\x76\x64\x1d", 7);
	memcpy(b + 88, "SM2706", 6);
	put_unaligned_be32(1000, b + 104);
	put_unaligned_be32(2000, b + 108);
	memcpy(b + 128, "FW0001", 6);
}

/* One command. False when the card does not take it in its state. */
static bool execute(struct vmmc *v, struct mmc_command *c, struct mmc_data *d, u32 *announced)
{
	u8 b[64] = {};
	bool app = v->app;

	v->app = false;
	switch (c->opcode | (app ? APP : 0)) {
	case MMC_GO_IDLE_STATE:
		v->state = IDLE;
		return true;
	case MMC_SEND_OP_COND:
		if (!emmc)
			return false;
		c->resp[0] = MMC_VDD_32_33 | MMC_VDD_33_34 | 1 << 30 | MMC_CARD_BUSY;
		v->state = READY;
		return true;
	case MMC_ALL_SEND_CID:
		memcpy(c->resp, v->cid, 16);
		v->state = IDENT;
		return true;
	case SD_SEND_RELATIVE_ADDR:
		if (emmc)
			v->rca = c->arg >> 16;
		else
			c->resp[0] = v->rca << 16 | STBY << 8 | R1_READY_FOR_DATA;
		v->state = STBY;
		return true;
	case SD_SWITCH:
		if (emmc) {
			/* Writes a byte of the EXT_CSD: its number in bits 23:16, the value in bits 15:8. */
			if (c->arg >> 24 != MMC_SWITCH_MODE_WRITE_BYTE)
				return false;
			v->ext_csd[c->arg >> 16 & 0xff] = c->arg >> 8;
			return true;
		}
		if (!d)
			return false;
		/* 100 mA; default and high speed in group 1, the default only in the others. */
		b[1] = 100;
		b[3] = b[5] = b[7] = b[9] = b[11] = 1;
		b[6] = b[8] = b[10] = b[12] = 0x80;
		b[13] = 3;
		if ((c->arg & 0xf) != 0xf)
			b[16] = (c->arg & 0xf) > 1 ? 0xf : c->arg & 0xf;
		answer(d, b, 64);
		return true;
	case MMC_SELECT_CARD:
		if (c->arg >> 16 == v->rca)
			v->state = TRAN;
		else if (v->state >= STBY)
			v->state = STBY;
		return c->arg >> 16 == v->rca || !(c->arg >> 16);
	case SD_SEND_IF_COND: /* CMD8 of an eMMC is another one */
		if (emmc && d && v->state == TRAN) {
			answer(d, v->ext_csd, 512);
			return true;
		}
		if (emmc || v->state != IDLE || d)
			return false;
		c->resp[0] = c->arg & 0xfff;
		return true;
	case MMC_SEND_CSD:
		memcpy(c->resp, v->csd, 16);
		return true;
	case MMC_SEND_CID:
		memcpy(c->resp, v->cid, 16);
		return true;
	case MMC_STOP_TRANSMISSION:
		if (v->state != DATA && v->state != RCV)
			return false;
		if (c->flags & MMC_RSP_BUSY)
			wait_while_busy(v);
		v->state = TRAN;
		return true;
	case MMC_SEND_STATUS:
	case MMC_SET_BLOCKLEN:
		return true;
	case MMC_READ_SINGLE_BLOCK:
	case MMC_READ_MULTIPLE_BLOCK:
	case MMC_WRITE_BLOCK:
	case MMC_WRITE_MULTIPLE_BLOCK:
		if (v->state != TRAN || !d)
			return false;
		transfer(v, c, d, c->opcode == MMC_READ_MULTIPLE_BLOCK || c->opcode == MMC_WRITE_MULTIPLE_BLOCK);
		return true;
	case MMC_GEN_CMD:
		/* The one argument that this layout has; any other is not answered. */
		if (emmc || !health || !d || v->state != TRAN || c->arg != 0x110005f1)
			return false;
		health_block(v, v->bounce);
		answer(d, v->bounce, 512);
		return true;
	case MMC_SET_BLOCK_COUNT:
		*announced = c->arg & 0xffffff;
		return cmd23;
	case SD_ERASE_WR_BLK_START:
	case MMC_ERASE_GROUP_START:
		v->erase_from = c->arg;
		return true;
	case SD_ERASE_WR_BLK_END:
	case MMC_ERASE_GROUP_END:
		v->erase_to = c->arg;
		return true;
	case MMC_ERASE:
		if (v->erase_to < v->erase_from)
			return false;
		erase(v, c->arg & 0x80000000);
		if (c->flags & MMC_RSP_BUSY)
			wait_while_busy(v);
		return true;
	case MMC_APP_CMD:
		if (emmc || c->arg >> 16 != (v->state < STBY ? 0 : v->rca))
			return false;
		v->app = true;
		c->resp[0] = status(v);
		return true;
	case APP | SD_APP_SET_BUS_WIDTH:
	case APP | 42: /* ACMD42: card detect */
	case APP | MMC_SET_BLOCK_COUNT: /* ACMD23: blocks to erase ahead */
		return true;
	case APP | SD_APP_SD_STATUS:
		if (!d)
			return false;
		b[0] = 0x80; /* four data lines */
		b[8] = 4; /* class 10 */
		b[10] = au_code << 4;
		b[12] = 1; /* 256 AUs ... */
		b[13] = 1 << 2; /* ... erased in 1 s */
		answer(d, b, 64);
		return true;
	case APP | SD_APP_SEND_NUM_WR_BLKS:
		if (!d)
			return false;
		put_unaligned_be32(v->written, b);
		answer(d, b, 4);
		return true;
	case APP | SD_APP_OP_COND:
		c->resp[0] = MMC_VDD_32_33 | MMC_VDD_33_34;
		if (c->arg) {
			c->resp[0] |= MMC_CARD_BUSY | SD_OCR_CCS;
			v->state = READY;
		}
		return true;
	case APP | SD_APP_SEND_SCR:
		if (!d)
			return false;
		b[0] = 2; /* specification 3.0 with byte 2 */
		b[1] = 0x35; /* security of SDHC, one and four data lines */
		b[2] = 0x80;
		b[3] = cmd23 ? SD_SCR_CMD23_SUPPORT : 0;
		answer(d, b, 8);
		return true;
	}
	return false;
}

static void command(struct vmmc *v, struct mmc_command *c, struct mmc_data *d)
{
	u32 announced = 0;

	if (trace)
		pr_info("vmmc: %sCMD%u arg %08x blocks %u state %d\n", v->app ? "A" : "", c->opcode, c->arg, d ? d->blocks : 0, v->state);
	c->error = 0;
	c->resp[0] = status(v);
	if (!execute(v, c, d, &announced))
		c->error = -ETIMEDOUT;
	v->preset = announced;
}

static void serve(struct work_struct *w)
{
	struct vmmc *v = container_of(w, struct vmmc, work);
	struct mmc_request *q = v->request;

	if (q->sbc)
		command(v, q->sbc, NULL);
	if (!q->sbc || !q->sbc->error) {
		command(v, q->cmd, q->data);
		if (q->data && q->stop && !q->cmd->error && (!q->sbc || q->data->error))
			command(v, q->stop, NULL);
	}
	v->request = NULL;
	mmc_request_done(v->host, q);
}

static void vmmc_request(struct mmc_host *host, struct mmc_request *q)
{
	struct vmmc *v = mmc_priv(host);

	v->request = q;
	queue_work(v->queue, &v->work);
}

static void vmmc_set_ios(struct mmc_host *host, struct mmc_ios *ios)
{
}

static int vmmc_present(struct mmc_host *host)
{
	return 1;
}

static int vmmc_read_only(struct mmc_host *host)
{
	return 0;
}

static int vmmc_card_busy(struct mmc_host *host)
{
	return busy(mmc_priv(host));
}

static const struct mmc_host_ops ops = {
	.request = vmmc_request,
	.set_ios = vmmc_set_ios,
	.get_cd = vmmc_present,
	.get_ro = vmmc_read_only,
	.card_busy = vmmc_card_busy,
};

/* CSD version 2: capacity in units of 512 KiB. CID: maker 0xfe or `manfid`, "VM", "VCARD", 1.0, serial 12345678, 01/2026. */
static void make_sd(struct vmmc *v)
{
	u32 units = v->sectors / 1024 - 1;

	v->rca = SD_RCA;
	v->csd[0] = 0x400e0032;
	v->csd[1] = 0x5b590000 | (units >> 16 & 0x3f);
	v->csd[2] = units << 16 | 0x7f80;
	v->csd[3] = 0x0a400001;
	v->cid[0] = (manfid & 0xff) << 24 | 0x564d56;
	v->cid[1] = 0x43415244;
	v->cid[2] = 0x10123456;
	v->cid[3] = 0x7801a101;
}

/*
 * CSD of specification 4 and later: what counts stands in the EXT_CSD (JESD84-B51 7.4). CID: maker 0xfe, "VEMMC1", 1.0, serial
 * 12345678, 01/2023.
 */
static void make_emmc(struct vmmc *v)
{
	u8 *e = v->ext_csd;

	v->csd[0] = 0xd0270132;
	v->csd[1] = 0x0f5903ff;
	v->csd[2] = 0xf6dbffef;
	v->csd[3] = 0x8e40400d;
	v->cid[0] = 0xfe014d56;
	v->cid[1] = 0x454d4d43;
	v->cid[2] = 0x31101234;
	v->cid[3] = 0x56781a01;
	e[192] = 8;	/* EXT_CSD_REV: 5.1 */
	e[194] = 2;	/* CSD_STRUCTURE */
	e[196] = 1;	/* CARD_TYPE: 26 MHz */
	put_unaligned_le32(v->sectors, e + 212);
	e[221] = 16;	/* HC_WP_GRP_SIZE: 8 MiB */
	e[222] = 1;	/* REL_WR_SEC_C */
	e[223] = 1;	/* ERASE_TIMEOUT_MULT */
	e[224] = 1;	/* HC_ERASE_GRP_SIZE: 512 KiB */
	e[229] = 1;	/* SEC_TRIM_MULT */
	e[230] = 1;	/* SEC_ERASE_MULT */
	e[231] = 0x11;	/* SEC_FEATURE_SUPPORT: trim, secure erase */
	e[232] = 1;	/* TRIM_MULT */
	e[248] = 10;	/* GENERIC_CMD6_TIME */
	memcpy(e + 254, "fw 1.0", 6);
	e[265] = 8;	/* OPTIMAL_WRITE_SIZE */
	e[267] = 1;	/* PRE_EOL_INFO: normal */
	e[268] = 1;	/* DEVICE_LIFE_TIME_EST_TYP_A: up to 10 % */
	e[269] = 3;	/* DEVICE_LIFE_TIME_EST_TYP_B: 20 to 30 % */
	e[504] = 1;	/* S_CMD_SET */
}

static int __init vmmc_init(void)
{
	struct mmc_host *host;
	struct vmmc *v;
	int error = -ENOMEM;

	platform = platform_device_register_simple("vmmc", -1, NULL, 0);
	if (IS_ERR(platform))
		return PTR_ERR(platform);
	platform->dev.dma_mask = NULL;
	host = mmc_alloc_host(sizeof(*v), &platform->dev);
	if (!host)
		goto no_host;
	slot = v = mmc_priv(host);
	v->host = host;
	v->sectors = (u64)size_mb * 2048;
	xa_init(&v->store);
	INIT_WORK(&v->work, serve);
	if (emmc)
		make_emmc(v);
	else
		make_sd(v);
	host->ops = &ops;
	host->f_min = 400000;
	host->f_max = 50000000;
	host->ocr_avail = MMC_VDD_32_33 | MMC_VDD_33_34;
	host->caps = MMC_CAP_4_BIT_DATA | MMC_CAP_SD_HIGHSPEED | MMC_CAP_CMD23 | MMC_CAP_WAIT_WHILE_BUSY;
	host->max_blk_size = 512;
	host->max_blk_count = 8192;
	host->max_req_size = 4 << 20;
	host->max_seg_size = 4 * PIECE;
	host->max_segs = 128;
	host->max_busy_timeout = 60000;
	v->queue = alloc_ordered_workqueue("vmmc", WQ_HIGHPRI);
	if (!v->queue)
		goto no_queue;
	v->bounce = kvmalloc(host->max_req_size, GFP_KERNEL);
	if (!v->bounce)
		goto no_bounce;
	error = mmc_add_host(host);
	if (!error)
		return 0;
	kvfree(v->bounce);
no_bounce:
	destroy_workqueue(v->queue);
no_queue:
	mmc_free_host(host);
no_host:
	platform_device_unregister(platform);
	return error;
}

static void __exit vmmc_exit(void)
{
	unsigned long i;
	void *piece;

	mmc_remove_host(slot->host);
	destroy_workqueue(slot->queue);
	xa_for_each(&slot->store, i, piece)
		kvfree(piece);
	xa_destroy(&slot->store);
	kvfree(slot->bounce);
	mmc_free_host(slot->host);
	platform_device_unregister(platform);
}

module_init(vmmc_init);
module_exit(vmmc_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("virtual MMC host with a model of an SD card or an eMMC, for tests");
